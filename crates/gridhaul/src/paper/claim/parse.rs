//! The language of claims: comparisons of curves.
//!
//! ```text
//! claim   = sum ("<" | "<=" | ">" | ">=") sum [ "for" share "of x in" number ".." number ]
//! share   = "all" | number "%"
//! sum     = product { ("+" | "-") product }
//! product = atom { ("*" | "/") atom }
//! atom    = number | "x" | "(" sum ")" | "abs(" sum ")"
//!         | curve "(" sum ")"                                 the value at a position
//!         | ("min" | "max") "(" curve [ "," number ".." number ] ")"
//!         | ("first" | "last") "(" curve ("<" | ...) sum ")"   first or last position
//! curve   = figure "." line [ "@" backend ]   8b.vegas@paper_model; ns_2 for the values of ns-2
//! ```

use std::fmt;

/// A claim about curves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedClaim {
    /// Left side.
    pub(super) left: Expression,
    /// Required relation to the right side.
    pub(super) relation: Relation,
    /// Right side.
    pub(super) right: Expression,
    /// Range of positions, if it is a claim about many of them.
    pub(super) range_of_x: Option<XRange>,
}

/// The positions for which a claim is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct XRange {
    /// Required ratio of positions at which it holds.
    pub(super) share: f64,
    /// First position.
    pub(super) from: f64,
    /// Last position.
    pub(super) to: f64,
}

/// A number that is computed from curves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    /// The position, in a claim about many of them.
    X,
    Value(CurveName, Box<Self>),
    Extreme(Extreme, CurveName, Option<(f64, f64)>),
    Crossing(Occurrence, CurveName, Relation, Box<Self>),
    Absolute(Box<Self>),
    Combined(Box<Self>, Operation, Box<Self>),
}

/// A curve: its figure and line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurveName {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// Backend. Absent: the backend for which the claim is evaluated.
    pub(crate) backend: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Minimum,
    Maximum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Plus,
    Minus,
    Times,
    Over,
}

/// Reads a claim.
///
/// # Errors
/// Text that was found, and the text that was expected there.
pub(super) fn parse(text: &str) -> Result<ParsedClaim, String> {
    let mut reader = Reader { text, tokens: tokens(text)?, next: 0 };
    let left = reader.sum()?;
    let relation = reader.relation()?;
    let right = reader.sum()?;
    let range_of_x = if reader.accept("for") { Some(reader.x_range()?) } else { None };
    match reader.tokens.get(reader.next) {
        None => Ok(ParsedClaim { left, relation, right, range_of_x }),
        Some(_) => Err(reader.expected("\"for\" or the end")),
    }
}

impl ParsedClaim {
    /// The curves that it refers to.
    pub(super) fn curves(&self) -> Vec<&CurveName> {
        let mut found = Vec::new();
        self.left.curves(&mut found);
        self.right.curves(&mut found);
        found
    }

    /// The backend that a claim judges if all of its curves name theirs: that of the first curve.
    pub(super) fn judged(&self) -> Option<&str> {
        let curves = self.curves();
        let all = curves.iter().all(|name| name.backend.is_some());
        curves.first().and_then(|name| name.backend.as_deref()).filter(|_| all)
    }
}

impl Expression {
    fn curves<'a>(&'a self, found: &mut Vec<&'a CurveName>) {
        match self {
            Self::Number(_) | Self::X => {}
            Self::Value(name, inner) | Self::Crossing(_, name, _, inner) => {
                found.push(name);
                inner.curves(found);
            }
            Self::Extreme(_, name, _) => found.push(name),
            Self::Absolute(inner) => inner.curves(found),
            Self::Combined(left, _, right) => {
                left.curves(found);
                right.curves(found);
            }
        }
    }
}

/// A token and its offset.
struct Token<'a> {
    text: &'a str,
    at: usize,
}

/// Words and numbers, `..`, comparisons, and single signs.
fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@');
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '.' if rest.starts_with("..") => 2,
            c if word(c) => {
                let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
                // `1..9`: the dots are a token of their own.
                rest.find("..").map_or(end, |dots| dots.min(end))
            }
            '<' | '>' if rest[1..].starts_with('=') => 2,
            '<' | '>' | '(' | ')' | ',' | '+' | '-' | '*' | '/' | '%' => 1,
            c => return Err(format!("{text:?}: unexpected character {c:?}")),
        };
        tokens.push(Token { text: &rest[..length], at });
        at += length;
    }
    Ok(tokens)
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<Expression, String> {
        let mut sum = self.product()?;
        loop {
            let operation = match self.peek() {
                "+" => Operation::Plus,
                "-" => Operation::Minus,
                _ => return Ok(sum),
            };
            self.next += 1;
            sum = Expression::Combined(Box::new(sum), operation, Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut product = self.atom()?;
        loop {
            let operation = match self.peek() {
                "*" => Operation::Times,
                "/" => Operation::Over,
                _ => return Ok(product),
            };
            self.next += 1;
            product = Expression::Combined(Box::new(product), operation, Box::new(self.atom()?));
        }
    }

    fn atom(&mut self) -> Result<Expression, String> {
        match self.peek() {
            "(" => self.inner(),
            "abs" => {
                self.next += 1;
                Ok(Expression::Absolute(Box::new(self.inner()?)))
            }
            "x" => {
                self.next += 1;
                Ok(Expression::X)
            }
            "min" => self.extreme(Extreme::Minimum),
            "max" => self.extreme(Extreme::Maximum),
            "first" => self.occurrence(Occurrence::First),
            "last" => self.occurrence(Occurrence::Last),
            text if text.parse::<f64>().is_ok() => Ok(Expression::Number(self.number()?)),
            _ => {
                let name = self.name()?;
                Ok(Expression::Value(name, Box::new(self.inner()?)))
            }
        }
    }

    fn inner(&mut self) -> Result<Expression, String> {
        self.expect("(")?;
        let inner = self.sum()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn extreme(&mut self, extreme: Extreme) -> Result<Expression, String> {
        self.next += 1;
        self.expect("(")?;
        let name = self.name()?;
        let range = if self.accept(",") { Some(self.range()?) } else { None };
        self.expect(")")?;
        Ok(Expression::Extreme(extreme, name, range))
    }

    fn occurrence(&mut self, end: Occurrence) -> Result<Expression, String> {
        self.next += 1;
        self.expect("(")?;
        let (name, relation, limit) = (self.name()?, self.relation()?, self.sum()?);
        self.expect(")")?;
        Ok(Expression::Crossing(end, name, relation, Box::new(limit)))
    }

    fn x_range(&mut self) -> Result<XRange, String> {
        let share = if self.accept("all") {
            1.0
        } else {
            let share = self.number()? / 100.0;
            self.expect("%")?;
            share
        };
        for word in ["of", "x", "in"] {
            self.expect(word)?;
        }
        let (from, to) = self.range()?;
        Ok(XRange { share, from, to })
    }

    fn range(&mut self) -> Result<(f64, f64), String> {
        let from = self.number()?;
        self.expect("..")?;
        let to = self.number()?;
        if from <= to { Ok((from, to)) } else { Err(self.expected("a range that rises")) }
    }

    fn relation(&mut self) -> Result<Relation, String> {
        let relation = match self.peek() {
            "<" => Relation::Below,
            "<=" => Relation::AtMost,
            ">" => Relation::Above,
            ">=" => Relation::AtLeast,
            _ => return Err(self.expected("one of < <= > >=")),
        };
        self.next += 1;
        Ok(relation)
    }

    fn name(&mut self) -> Result<CurveName, String> {
        let (curve, backend) = match self.peek().split_once('@') {
            Some((curve, backend)) => (curve, Some(backend.replace('_', "-"))),
            None => (self.peek(), None),
        };
        let found = curve
            .split_once('.')
            .filter(|(figure, line)| !figure.is_empty() && !line.is_empty() && !line.contains('.'));
        let Some((figure, line)) = found else {
            return Err(self.expected("a number or a curve such as 10a.vegas"));
        };
        let name = CurveName { figure: figure.to_owned(), line: line.to_owned(), backend };
        self.next += 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<f64, String> {
        let number = self.peek().parse().map_err(|_| self.expected("a number"))?;
        self.next += 1;
        Ok(number)
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("{token:?}"))) }
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", |token| token.text)
    }

    fn expected(&self, what: &str) -> String {
        let text = self.text;
        match self.tokens.get(self.next) {
            Some(token) => {
                format!("{text:?}: expected {what} at {:?}", &text[token.at..])
            }
            None => format!("{text:?}: expected {what} at the end"),
        }
    }
}

impl fmt::Display for CurveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.figure, self.line)
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Below => "<",
            Self::AtMost => "≤",
            Self::Above => ">",
            Self::AtLeast => "≥",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_precede_sums_and_ranges_are_not_numbers() {
        let claim = parse("1 + 2 * 10a.reno(x) < 3 for 75 % of x in 50..250").unwrap();
        let Expression::Combined(one, Operation::Plus, product) = &claim.left else { panic!() };
        assert_eq!(**one, Expression::Number(1.0));
        assert!(matches!(**product, Expression::Combined(_, Operation::Times, _)));
        assert_eq!(claim.range_of_x, Some(XRange { share: 0.75, from: 50.0, to: 250.0 }));
        let mut name = CurveName { figure: "10a".into(), line: "reno".into(), backend: None };
        assert_eq!(claim.curves(), [&name]);
        name.backend = Some("paper-model".into());
        assert_eq!(parse("10a.reno@paper_model(1) < 3").unwrap().curves(), [&name]);
    }

    #[test]
    fn errors_name_their_position() {
        for (text, expected) in [
            ("10a.reno(0)", "expected one of < <= > >= at the end"),
            ("10a.reno(0) < ", "a curve such as 10a.vegas at the end"),
            ("reno(0) < 1", "a curve such as 10a.vegas at \"reno(0) < 1\""),
            ("10a.reno(0 < 1", "expected \")\" at \"< 1\""),
            ("1 < 2 for most of x in 1..2", "expected a number at \"most of"),
            ("1 < 2 for all of x in 2..1", "a range that rises"),
            ("1 < 2 3", "expected \"for\" or the end at \"3\""),
            ("1 = 2", "unexpected character '='"),
            ("first(10a.reno) < 2", "expected one of < <= > >= at \") < 2\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
