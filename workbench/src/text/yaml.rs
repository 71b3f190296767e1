//! Reads YAML as JSON values, with the place of each, within bounds.

mod node;
mod scalar;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use saphyr_parser::{Event, Parser, Span};

pub(crate) use self::node::Node;
use self::node::{Content, Size};

/// Maximum number of values in a file; what an alias stands for counts each time.
const VALUES_MAX: usize = 200_000;
/// Maximum length of all values and names together, in bytes; what an alias stands for counts each time. More than any
/// file has that is read, so that only aliases exceed it.
const BYTES_MAX: usize = 16 << 20;
/// Maximum nesting depth.
const DEPTH_MAX: usize = 64;

/// The reason why a text is not read, and its line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadYaml {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Reads the document of `text`; an empty one is null. A second one would be ignored, so it is an error.
pub(crate) fn parse(text: &str) -> Result<Node, BadYaml> {
    let left = Size { values: VALUES_MAX, bytes: BYTES_MAX };
    let mut loader = Loader { text, offsets: offsets(text), anchors: HashMap::new(), open: Vec::new(), left };
    let mut document = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| BadYaml { line: error.marker().line(), reason: format!("not YAML: {}", error.info()) })?;
        let line = span.start.line();
        if document.is_some() && matches!(event, Event::DocumentStart(_)) {
            let reason = "it has a second document: write one file for each".to_owned();
            return Err(BadYaml { line, reason });
        }
        document = loader.event(event, span).map_err(|reason| BadYaml { line, reason })?.or(document);
    }
    Ok(document.unwrap_or(Node { line: 1, column: 0, range: 0..0, content: Arc::default(), size: Size::default() }))
}

/// The byte at which each character begins, and the end.
fn offsets(text: &str) -> Option<Vec<usize>> {
    (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).chain([text.len()]).collect())
}

struct Loader<'a> {
    text: &'a str,
    /// None where characters are bytes.
    offsets: Option<Vec<usize>>,
    anchors: HashMap<usize, Node>,
    open: Vec<Open>,
    left: Size,
}

/// A list or object whose end has not come yet.
struct Open {
    /// Without its content.
    node: Node,
    content: Content,
    anchor: usize,
    /// The name of the member that comes next, and where it ends.
    name: Option<(String, usize)>,
    names: HashSet<String>,
}

impl Loader<'_> {
    /// The document, once it is complete.
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<Option<Node>, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let (value, size) = (scalar::value(&text, style, is_text), Size { values: 1, bytes: text.len() });
                let content = Arc::new(Content::Scalar(value, text.into_owned()));
                let mut node = Node { content, size, ..self.node(span) };
                node.range.end = node.range.start + scalar::written(&self.text[node.range.clone()], style).len();
                self.count(size)?;
                self.done(node, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(span, Content::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(span, Content::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).ok_or("an alias stands for a value that it is part of")?.clone();
                self.count(node.size)?;
                self.put(Node { range: self.range(span), line: span.start.line(), column: span.start.col(), ..node })
            }
            _ => Ok(None),
        }
    }

    fn range(&self, span: Span) -> Range<usize> {
        let byte = |index: usize| match &self.offsets {
            Some(offsets) => offsets.get(index).or(offsets.last()).copied().unwrap_or(0),
            None => index.min(self.text.len()),
        };
        byte(span.start.index())..byte(span.end.index())
    }

    /// A node at this place, still without content.
    fn node(&self, span: Span) -> Node {
        let (line, column, size) = (span.start.line(), span.start.col(), Size { values: 1, bytes: 0 });
        Node { line, column, range: self.range(span), content: Arc::default(), size }
    }

    fn begin(&mut self, span: Span, content: Content, anchor: usize) -> Result<Option<Node>, String> {
        if self.open.len() >= DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.open.push(Open { node: self.node(span), content, anchor, name: None, names: HashSet::new() });
        Ok(None)
    }

    fn end(&mut self, span: Span) -> Result<Option<Node>, String> {
        let Some(Open { mut node, content, anchor, .. }) = self.open.pop() else { return Ok(None) };
        // A block ends where the next thing begins, behind blank lines and comments.
        let last = match &content {
            Content::List(nodes) => nodes.last(),
            Content::Map(members) => members.last().map(|(_, node)| node),
            Content::Scalar(..) => None,
        };
        let closing = self.range(span).start;
        let is_flow = self.text.get(closing..).is_some_and(|rest| rest.starts_with(['}', ']']));
        node.range.end = match last {
            _ if is_flow => closing + 1,
            Some(last) => last.range.end,
            None => node.range.start,
        };
        node.content = Arc::new(content);
        self.count(Size { values: 1, bytes: 0 })?;
        self.done(node, anchor)
    }

    fn count(&mut self, size: Size) -> Result<(), String> {
        let left = |left: usize, more: usize, what: std::fmt::Arguments<'_>| {
            left.checked_sub(more).ok_or_else(|| format!("it has more than {what}, with what aliases stand for"))
        };
        self.left = Size {
            values: left(self.left.values, size.values, format_args!("{VALUES_MAX} values"))?,
            bytes: left(self.left.bytes, size.bytes, format_args!("{BYTES_MAX} bytes of text"))?,
        };
        Ok(())
    }

    /// Keeps a complete value if it has an anchor, and puts it into the one around it.
    fn done(&mut self, node: Node, anchor: usize) -> Result<Option<Node>, String> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.put(node)
    }

    fn put(&mut self, mut node: Node) -> Result<Option<Node>, String> {
        let Some(outer) = self.open.last_mut() else { return Ok(Some(node)) };
        outer.node.size.values += node.size.values;
        outer.node.size.bytes += node.size.bytes;
        match &mut outer.content {
            Content::List(nodes) => nodes.push(node),
            Content::Map(members) => match outer.name.take() {
                Some((name, end)) => {
                    node.range = after_colon(self.text, end, node.range);
                    members.push((name, node));
                }
                None => outer.name = Some((new_name(&mut outer.names, &node)?, node.range.end)),
            },
            Content::Scalar(..) => {}
        }
        Ok(None)
    }
}

/// Returns the range of the value of a member whose name ends at `name_end`. The parser places empty values at the next
/// thing, and texts of several lines behind their `|` or `>`.
fn after_colon(text: &str, name_end: usize, range: Range<usize>) -> Range<usize> {
    let Some(colon) = text.get(name_end..).and_then(|rest| rest.find(':')) else { return range };
    let after = name_end + colon + 1;
    if range.is_empty() {
        return after..after;
    }
    let header = text.get(after..range.start).unwrap_or_default();
    match header.find(['|', '>']) {
        Some(at) if header[..at].trim().is_empty() => after + at..range.end,
        _ => range,
    }
}

fn new_name(names: &mut HashSet<String>, node: &Node) -> Result<String, String> {
    let name = match &*node.content {
        Content::Scalar(_, text) => text.clone(),
        _ => return Err("the name of a member is a list or an object".to_owned()),
    };
    match names.insert(name.clone()) {
        false => Err(format!("`{name}` appears twice")),
        true if name == "<<" => Err("merge keys (`<<`) are not supported: write the members out".to_owned()),
        true => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::text::place::Step;

    #[test]
    fn reads_the_values_of_the_core_schema() {
        let text = "a: [1, -2.5, 0x1F, 0o17, 1e3, +4]\nb: {c: ~, d: , e: 'no', f: no, g: \"1\", h: .nan, i: !!str 7}\n\
                    j: |\n  two\n  lines\nk: &x [true, 2026-01-01]\nl: *x\n7: é\n";
        let expected = json!({
            "a": [1, -2.5, 31, 15, 1000.0, 4],
            "b": {"c": null, "d": null, "e": "no", "f": "no", "g": "1", "h": null, "i": "7"},
            "j": "two\nlines\n", "k": [true, "2026-01-01"], "l": [true, "2026-01-01"], "7": "é"
        });
        assert_eq!(parse(text).unwrap().value(), expected);
        assert_eq!(parse("").unwrap().value(), Value::Null);
        assert_eq!(parse("# one\n---\na: 1\n...\n# end\n").unwrap().value(), json!({"a": 1}));
    }

    #[test]
    fn knows_where_values_stand() {
        let text = "é: 'ö'\nlist:\n  - name: x\n    output: {a: 1}\n  - output:\n      b: 2\n# end\n";
        let root = parse(text).unwrap();
        let at = |index, name| {
            let node = root.find(&[Step::name("list"), Step::Index(index), Step::name(name)]).unwrap();
            (node.line, node.column, &text[node.range.clone()])
        };
        assert_eq!(at(0, "output"), (4, 12, "{a: 1}"));
        assert_eq!((at(1, "output").0, at(1, "output").1), (6, 6));
        assert_eq!(at(1, "output").2, "b: 2");
    }

    #[test]
    fn refuses_what_is_not_plain_data() {
        for (text, line, reason) in [
            ("a: 1\nb: 'x\n", 2, "not YAML"),
            ("a: 1\na: 2", 2, "`a` appears twice"),
            ("? [1]\n: 2", 1, "the name of a member"),
            ("a: &x {b: 1}\nc: {<<: *x}", 2, "merge keys"),
            ("a: *x", 1, "not YAML"),
            ("a: &x [*x]", 1, "an alias stands for"),
            ("---\na: 1\n---\na: 2\n", 3, "it has a second document"),
            ("a: 1\n...\nb\n", 3, "it has a second document"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.line == line && error.reason.contains(reason), "{text}: {error:?}");
        }
    }

    #[test]
    fn what_aliases_stand_for_is_counted_in_bytes() {
        let text =
            |anchor: &str, count| format!("a: &a {}\nb: {anchor}\n{}", "x".repeat(100_000), "- *a\n".repeat(count));
        let error = parse(&text("", 1000)).unwrap_err();
        assert!(error.line == 169 && error.reason.contains("more than 16777216 bytes of text"), "{error:?}");
        // However they are nested.
        assert_eq!(parse(&(text("&b", 100) + "c: [*b]")).unwrap_err().line, 103);
        let few = parse(&format!("a: &a {}\nb: [*a, *a]", "x".repeat(1 << 20))).unwrap();
        assert_eq!(few.value()["b"][1].as_str().unwrap().len(), 1 << 20);
        let (a, b) = (few.get("a").unwrap(), &few.get("b").unwrap().elements()[1]);
        assert!(Arc::ptr_eq(&a.content, &b.content), "an alias takes no memory");
    }

    #[test]
    fn bombs_of_aliases_and_of_depth_are_refused() {
        let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for level in 1..20 {
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
        }
        assert!(parse(&bomb).unwrap_err().reason.contains("more than 200000 values"));
        assert!(parse(&"[".repeat(10_000)).is_err(), "the parser has a limit of its own");
        assert!(parse(&"- ".repeat(10_000)).unwrap_err().reason.contains("nested"));
    }
}
