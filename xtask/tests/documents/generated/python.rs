//! `docs/python-api.md`: the public names of the Python package with their docstrings.

use std::collections::BTreeMap;

use crate::repository::Repository;

const FOLDER: &str = "python/gridhaul/";

const INTRODUCTION: &str = "\
# Python API

<!-- Generated from the docstrings in python/gridhaul by `cargo xtask docs`. -->

The public names of the package `gridhaul`. The [guide](guides/python.md) shows them in use.
";

/// A class, function, method or property.
struct Definition {
    /// 0 for the names of a module, 4 for those of a class.
    indent: usize,
    name: String,
    /// The lines from `class` or `def` to the colon.
    signature: String,
    is_property: bool,
    docstring: String,
}

/// The page, and the public names that have no docstring.
pub(crate) struct PythonApi {
    pub(crate) page: String,
    pub(crate) errors: Vec<String>,
}

impl PythonApi {
    pub(crate) fn generate(repository: &Repository) -> Self {
        let is_module = |path: &&str| path.starts_with(FOLDER) && path.ends_with(".py");
        let sources = repository.entries().filter(is_module).map(|path| repository.read(path));
        let public = public_names(&repository.read(&format!("{FOLDER}__init__.py")));
        let mut sections = BTreeMap::new();
        for source in sources {
            let definitions = definitions(&source);
            for (index, definition) in definitions.iter().enumerate() {
                if definition.indent == 0 && public.contains(&definition.name) {
                    let members = definitions[index + 1..].iter();
                    let members = members.take_while(|member| member.indent > 0);
                    sections.insert(definition.name.clone(), section(definition, members));
                }
            }
        }
        let missing = public.iter().filter(|name| !sections.contains_key(*name));
        // Types and the version are described where they are used.
        let missing = missing.filter(|name| !WITHOUT_SECTION.contains(&name.as_str()));
        let errors = missing.map(|name| format!("{name} has no docstring")).collect();
        let is_class = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
        let mut page = INTRODUCTION.to_owned();
        for (title, wanted) in [("Functions", false), ("Classes", true)] {
            page += &format!("\n## {title}\n");
            let own = sections.iter().filter(|(name, _)| is_class(name) == wanted);
            page.extend(own.map(|(_, section)| section.as_str()));
        }
        Self { page, errors }
    }
}

/// Names of types, and of the version.
const WITHOUT_SECTION: [&str; 4] = ["Cell", "Progress", "Value", "__version__"];

/// The names of `__all__`.
fn public_names(source: &str) -> Vec<String> {
    let list = source.split_once("__all__ = [").map_or("", |(_, rest)| rest);
    let list = list.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// All definitions with a docstring.
fn definitions(source: &str) -> Vec<Definition> {
    let lines: Vec<_> = source.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let kind = ["class ", "def "].iter().find_map(|kind| text.strip_prefix(kind));
        let Some(rest) = kind.filter(|_| indent <= 4) else {
            continue;
        };
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = rest[..end.unwrap_or(rest.len())].to_owned();
        let Some(last) = (index..lines.len()).find(|&at| lines[at].ends_with(':')) else {
            continue;
        };
        let signature: Vec<_> = lines[index..=last].iter().map(|line| line.trim()).collect();
        let is_property = index > 0 && lines[index - 1].trim() == "@property";
        let Some(docstring) = docstring(&lines[last + 1..], indent + 4) else {
            continue;
        };
        let signature = joined(&signature);
        found.push(Definition { indent, name, signature, is_property, docstring });
    }
    found
}

/// A signature in one line, or with one parameter a line if it is long.
fn joined(lines: &[&str]) -> String {
    let text = lines.join("\n    ");
    let text = text.trim_end_matches(':').replace("\n    )", "\n)");
    let line = lines.join(" ").replace("( ", "(").replace(", )", ")");
    if line.len() < 80 { line.trim_end_matches(':').to_owned() } else { text }
}

/// The docstring at the beginning of a body.
fn docstring(body: &[&str], indent: usize) -> Option<String> {
    let text = body.join("\n");
    let rest = text.trim_start().strip_prefix("\"\"\"")?;
    let (inner, _) = rest.split_once("\"\"\"")?;
    let margin = " ".repeat(indent);
    let lines = inner.lines().map(|line| line.strip_prefix(margin.as_str()).unwrap_or(line));
    Some(lines.collect::<Vec<_>>().join("\n").trim().to_owned())
}

/// A definition and the public members of a class.
fn section<'a>(definition: &Definition, members: impl Iterator<Item = &'a Definition>) -> String {
    let mut text = format!(
        "\n### {}\n\n```python\n{}\n```\n\n{}\n",
        definition.name,
        definition.signature,
        markdown(&definition.docstring)
    );
    for member in members {
        let Some((heading, signature)) = call(&definition.name, member) else { continue };
        let docstring = markdown(&member.docstring);
        text += &format!("\n#### {heading}\n\n```python\n{signature}\n```\n\n{docstring}\n");
    }
    text
}

/// The heading of a public member of a class, and how it is written: `Session(...)`,
/// `frame[column]`, or the name of a property or method. `None` for the other members.
fn call(class: &str, member: &Definition) -> Option<(String, String)> {
    let own = [("self,\n    ", ""), ("self, ", ""), ("(self)", "()"), ("cls, ", "")];
    let signature =
        own.iter().fold(member.signature.clone(), |text, (own, rest)| text.replacen(own, rest, 1));
    match member.name.as_str() {
        // Of the other classes, functions and methods create the instances.
        "__init__" => {
            let parameters = signature.strip_prefix("def __init__")?.strip_suffix(" -> None")?;
            let is_called = member.docstring.contains("Args:");
            is_called.then(|| (format!("{class}()"), format!("{class}{parameters}")))
        }
        "__getitem__" => {
            let (key, rest) = signature.strip_prefix("def __getitem__(")?.split_once(')')?;
            let name = key.split(':').next()?;
            let instance = class.to_ascii_lowercase();
            Some((format!("{class}[{name}]"), format!("{instance}[{key}]{rest}")))
        }
        name if name.starts_with('_') => None,
        name => {
            let signature = match member.is_property {
                true => signature.replace("def ", "").replace("()", ""),
                false => signature,
            };
            Some((format!("{class}.{name}"), signature))
        }
    }
}

/// A docstring as Markdown: sections such as "Args:" become lists.
fn markdown(docstring: &str) -> String {
    let mut text = String::new();
    let mut in_list = false;
    let mut in_block = false;
    for line in docstring.lines() {
        let heading = ["Args:", "Attributes:", "Raises:", "Returns:", "Example:", "Yields:"];
        let body = line.strip_prefix("    ");
        if heading.contains(&line) {
            in_list = line != "Example:";
            in_block = line == "Example:";
            let title = line.trim_end_matches(':').replace("Args", "Arguments");
            text += &format!("**{title}**\n\n{}", if in_block { "```python\n" } else { "" });
        } else if let Some(body) = body.filter(|_| in_list) {
            match body.split_once(": ").filter(|(name, _)| !name.contains(' ')) {
                Some((name, rest)) => text += &format!("- **{name}**: {}\n", plain(rest)),
                None => text += &format!("  {}\n", plain(body.trim_start())),
            }
        } else if in_block && (body.is_some() || line.is_empty()) {
            text += &format!("{}\n", body.unwrap_or_default());
        } else {
            text += &format!("{}{}\n", if in_block { "```\n\n" } else { "" }, plain(line));
            (in_list, in_block) = (in_list && line.is_empty(), false);
        }
    }
    if in_block {
        text = format!("{}\n```", text.trim_end());
    }
    text.trim_end().to_owned()
}

/// Marks of reStructuredText as those of Markdown. Attributes are bold, as in lists: a word in
/// backticks with a unit at its end is a metric.
fn plain(line: &str) -> String {
    let roles = [":func:", ":meth:", ":class:", ":exc:"];
    let line = roles.iter().fold(line.to_owned(), |line, role| line.replace(role, ""));
    let mut parts = line.split(":attr:`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('`').unwrap_or((part, ""));
        text += &format!("**{name}**{rest}");
    }
    text.replace("``", "`")
}

#[test]
fn docstrings_become_markdown() {
    let source = "class A(B):\n    \"\"\"Do.\n\n    Args:\n        x: One\n            and more.\n\
                  \x20   \
                  \"\"\"\n\n    @property\n    def y(self) -> int:\n        \"\"\"See \
                  :meth:`A.z`.\"\"\"\n\n    def _w(self) -> None:\n        \"\"\"Own.\"\"\"\n";
    let definitions = definitions(source);
    let text = section(&definitions[0], definitions[1..].iter());
    let expected = "\n### A\n\n```python\nclass A(B)\n```\n\nDo.\n\n**Arguments**\n\n- **x**: One\n\
                    \x20 and more.\n\n#### A.y\n\n```python\ny -> int\n```\n\nSee `A.z`.\n";
    assert_eq!(text, expected);
}

#[test]
fn signatures_are_those_of_a_caller() {
    let signatures = |body: &str| {
        let definitions = definitions(&format!("class Frame:\n    \"\"\"One.\"\"\"\n\n{body}"));
        call("Frame", &definitions[1])
    };
    let constructor = "    def __init__(self, rows: int) -> None:\n        \"\"\"New.\n\n        \
                       Args:\n            rows: Number.\n\n        \"\"\"\n";
    let subscript =
        "    def __getitem__(self, column: str) -> list[Cell]:\n        \"\"\"One.\"\"\"\n";
    let long = [
        "    def set_link(",
        "        self,",
        "        name_of_the_link: str,",
        "        *,",
        "        rate_of_the_link_in_both_directions: str | None = None,",
        "    ) -> None:",
        "        \"\"\"Change.\"\"\"\n",
    ]
    .join("\n");
    for (body, heading, signature) in [
        (constructor, "Frame()", "Frame(rows: int)"),
        (subscript, "Frame[column]", "frame[column: str] -> list[Cell]"),
        (
            &long,
            "Frame.set_link",
            "def set_link(\n    name_of_the_link: str,\n    *,\n    \
             rate_of_the_link_in_both_directions: str | None = None,\n) -> None",
        ),
    ] {
        assert_eq!(signatures(body), Some((heading.to_owned(), signature.to_owned())));
    }
    assert_eq!(signatures("    def __len__(self) -> int:\n        \"\"\"Rows.\"\"\"\n"), None);
    // Instances that other calls create.
    assert_eq!(
        signatures("    def __init__(self, a: int) -> None:\n        \"\"\"New.\"\"\"\n"),
        None
    );
}
