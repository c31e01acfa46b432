//! The network of tests of proxies, as text of a scenario.

/// Node `source`, the proxies `u1` to `u3`, and node `sink`, in a line of four hops of 25 ms (round
/// trip).
#[derive(Debug, Clone, Copy)]
pub struct ProxyChain<'a> {
    /// Mode of the proxies.
    pub mode: &'a str,
    /// Buffer of each proxy.
    pub buffer: &'a str,
    /// Rate of the hops in both directions.
    pub rate: &'a str,
    /// Queue of the hops toward the sink.
    pub queue: &'a str,
    /// Loss of each hop toward the sink, in percent.
    pub loss: [f64; 4],
}

impl ProxyChain<'_> {
    /// The tables `node` and `link`.
    #[must_use]
    pub fn to_toml(self) -> String {
        let Self { mode, buffer, rate, queue, loss } = self;
        let nodes = ["source", "u1", "u2", "u3", "sink"];
        let mut text = "[node]\nsource = {}\nsink = {}\n".to_owned();
        for proxy in &nodes[1..4] {
            text += &format!("[node.{proxy}.proxy]\nmode = \"{mode}\"\nbuffer = \"{buffer}\"\n");
        }
        for (index, ends) in nodes.windows(2).enumerate() {
            text += &format!(
                "[link.l{index}]\nfrom = \"{}\"\nto = \"{}\"\n\
                 [link.l{index}.forward]\nrate = \"{rate}\"\ndelay = \"12.5 ms\"\n\
                 queue = \"{queue}\"\nloss = {{ bernoulli = \"{} %\" }}\n\
                 [link.l{index}.reverse]\nrate = \"{rate}\"\ndelay = \"12.5 ms\"\n",
                ends[0], ends[1], loss[index]
            );
        }
        text
    }
}
