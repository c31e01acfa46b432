//! Output of a chain as a table, for Graphviz and for Mermaid.

use std::fmt::Write as _;

use super::Chain;

impl Chain {
    /// States with their stationary probabilities, then transitions with their rates and reasons,
    /// as Markdown tables.
    #[must_use]
    pub fn to_table(&self) -> String {
        let shares = self.stationary();
        let mut text = String::from("| state | segments | share of time |\n|---|--:|--:|\n");
        for (state, share) in self.states().iter().zip(&shares) {
            // An unreachable state has a probability of −0, which would print a sign.
            let _ = writeln!(text, "| {state} | {} | {:.6} |", state.segments, share + 0.0);
        }
        text.push_str("\n| from | to | rate, 1/s | reason |\n|---|---|--:|---|\n");
        for transition in self.transitions() {
            let (from, to) = (self.states()[transition.from], self.states()[transition.to]);
            let _ = writeln!(
                text,
                "| {from} | {to} | {:.6} | {} |",
                transition.rate, transition.reason
            );
        }
        text
    }

    /// Output for `dot` of Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph chain {\n  node [shape=box];\n");
        for (index, state) in self.states().iter().enumerate() {
            let _ = writeln!(text, "  s{index} [label=\"{state}\"];");
        }
        for (from, to, rate) in self.edges() {
            let _ = writeln!(text, "  s{from} -> s{to} [label=\"{rate:.4}\"];");
        }
        text.push_str("}\n");
        text
    }

    /// Output for Mermaid, which Markdown viewers render.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("stateDiagram-v2\n");
        for (index, state) in self.states().iter().enumerate() {
            let _ = writeln!(text, "  s{index}: {state}");
        }
        for (from, to, rate) in self.edges() {
            let _ = writeln!(text, "  s{from} --> s{to}: {rate:.4}");
        }
        text
    }

    /// Pairs of states with the sum of their rates, without zero rates.
    fn edges(&self) -> Vec<(usize, usize, f64)> {
        let mut edges: Vec<(usize, usize, f64)> = Vec::new();
        for transition in self.transitions().iter().filter(|transition| transition.rate > 0.0) {
            match edges.iter_mut().find(|edge| (edge.0, edge.1) == (transition.from, transition.to))
            {
                Some(edge) => edge.2 += transition.rate,
                None => edges.push((transition.from, transition.to, transition.rate)),
            }
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use crate::chain::{Chain, State};

    #[test]
    fn a_small_chain_in_all_three_forms() {
        let mut chain = Chain::new();
        let idle = chain.state(State::silent("idle"));
        let send = chain.state(State {
            phase: "send",
            segments: 2,
            fresh: 2,
            arriving: 2.0,
            rounds: 1.5,
            mark: Some(("doublings", 1)),
        });
        chain.transition(idle, send, 0.5, "a burst begins");
        chain.transition(send, idle, 1.5, "a burst ends");
        assert_eq!(
            chain.to_table(),
            "| state | segments | share of time |\n|---|--:|--:|\n\
             | idle | 0 | 0.750000 |\n| send 2 (doublings 1) | 2 | 0.250000 |\n\
             \n| from | to | rate, 1/s | reason |\n|---|---|--:|---|\n\
             | idle | send 2 (doublings 1) | 0.500000 | a burst begins |\n\
             | send 2 (doublings 1) | idle | 1.500000 | a burst ends |\n"
        );
        assert_eq!(
            chain.to_dot(),
            "digraph chain {\n  node [shape=box];\n  s0 [label=\"idle\"];\n\
             \x20 s1 [label=\"send 2 (doublings 1)\"];\n  s0 -> s1 [label=\"0.5000\"];\n\
             \x20 s1 -> s0 [label=\"1.5000\"];\n}\n"
        );
        assert_eq!(
            chain.to_mermaid(),
            "stateDiagram-v2\n  s0: idle\n  s1: send 2 (doublings 1)\n  s0 --> s1: 0.5000\n\
             \x20 s1 --> s0: 1.5000\n"
        );
    }
}
