//! Finds the places of values in a text of JSON, or of JavaScript literals, without reading the values.

use std::ops::Range;

use super::place::Step;

/// Returns the range of the value at `path`, in bytes.
pub(crate) fn find(text: &str, path: &[Step]) -> Option<Range<usize>> {
    let mut scanner = Scanner { text: text.as_bytes(), at: 0 };
    let mut found = scanner.value()?;
    for step in path {
        scanner.at = found.start;
        found = match step {
            Step::Index(index) => scanner.elements().nth(*index)?,
            // Of a name that is written twice, the last member counts.
            Step::Name(name) => scanner.members().filter(|(key, _)| key == name).last()?.1,
        };
    }
    Some(found)
}

/// Returns the end of the last member of the object at `path`, or the place for a first one, and whether there is none.
pub(crate) fn last_member(text: &str, path: &[Step]) -> Option<(usize, bool)> {
    let object = find(text, path)?;
    let mut scanner = Scanner { text: text.as_bytes(), at: object.start };
    let is_object = scanner.peek() == Some(b'{');
    let last = scanner.members().last().map(|(_, range)| range.end);
    // What is no plain member ends the list too.
    scanner.blanks();
    let is_whole = is_object && scanner.peek() == Some(b'}') && scanner.at + 1 == object.end;
    is_whole.then(|| (last.unwrap_or(object.start + 1), last.is_none()))
}

/// A member of an object, or an element of an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Absent for elements.
    pub(crate) name: Option<String>,
    /// Start of its name, or of its value.
    pub(crate) start: usize,
    pub(crate) value: Range<usize>,
    /// The comma behind it.
    pub(crate) comma: Option<usize>,
}

/// The members or elements of the value at `range`; none if it has anything else, or is neither object nor array.
pub(crate) fn items(text: &str, range: &Range<usize>) -> Option<Vec<Item>> {
    let mut scanner = Scanner { text: text.as_bytes(), at: range.start };
    let is_object = match scanner.peek() {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return None,
    };
    scanner.at += 1;
    let mut items: Vec<Item> = Vec::new();
    scanner.blanks();
    while scanner.at + 1 < range.end && items.last().is_none_or(|last| last.comma.is_some()) {
        let start = scanner.at;
        let name = if is_object { Some(scanner.key()?) } else { None };
        let value = scanner.value()?;
        let comma = (scanner.peek() == Some(b',')).then_some(scanner.at);
        scanner.comma();
        scanner.blanks();
        items.push(Item { name, start, value, comma });
    }
    (scanner.at + 1 == range.end).then_some(items)
}

/// Returns the range of each element of the array at `path`.
pub(crate) fn elements(text: &str, path: &[Step]) -> Vec<Range<usize>> {
    let Some(array) = find(text, path) else { return Vec::new() };
    Scanner { text: text.as_bytes(), at: array.start }.elements().collect()
}

/// The line, from 1, of each element of the array at `path`.
pub(crate) fn lines(text: &str, path: &[Step]) -> Vec<usize> {
    let (mut line, mut before) = (1, 0);
    elements(text, path)
        .into_iter()
        .map(|range| {
            line += text.as_bytes()[before..range.start].iter().filter(|byte| **byte == b'\n').count();
            before = range.start;
            line
        })
        .collect()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space, byte order marks and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.at += match rest {
                [byte, ..] if byte.is_ascii_whitespace() => 1,
                [0xef, 0xbb, 0xbf, ..] => 3,
                [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
                [b'/', b'*', ..] => rest.windows(2).position(|two| two == b"*/").map_or(rest.len(), |at| at + 2),
                _ => return,
            };
        }
    }

    fn string(&mut self) {
        let quote = self.peek();
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if Some(byte) == quote {
                break;
            }
        }
    }

    /// Skips a value and returns where it is: everything up to a comma or bracket outside of it.
    fn value(&mut self) -> Option<Range<usize>> {
        self.blanks();
        let (start, mut end, mut depth) = (self.at, self.at, 0_usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'"' | b'\'' | b'`' => self.string(),
                b'{' | b'[' | b'(' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b')' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b'}' | b']' | b')' | b',' | b';' if depth == 0 => break,
                _ => self.at += 1,
            }
            end = self.at.min(self.text.len());
            self.blanks();
        }
        (end > start).then_some(start..end)
    }

    fn elements(&mut self) -> impl Iterator<Item = Range<usize>> {
        let is_array = self.peek() == Some(b'[');
        self.at += 1;
        std::iter::from_fn(move || {
            let found = self.value()?;
            self.comma();
            is_array.then_some(found)
        })
    }

    fn members(&mut self) -> impl Iterator<Item = (String, Range<usize>)> {
        let is_object = self.peek() == Some(b'{');
        self.at += 1;
        std::iter::from_fn(move || {
            let name = self.key()?;
            let found = self.value()?;
            self.comma();
            is_object.then_some((name, found))
        })
    }

    fn comma(&mut self) {
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    /// Skips a name and its colon.
    fn key(&mut self) -> Option<String> {
        self.blanks();
        let start = self.at;
        match self.peek()? {
            b'"' | b'\'' => self.string(),
            _ => {
                while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(&byte)) {
                    self.at += 1;
                }
            }
        }
        let name = String::from_utf8_lossy(self.text.get(start..self.at)?).trim_matches(['"', '\'']).to_owned();
        self.blanks();
        (self.peek()? == b':').then(|| self.at += 1)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_values_in_json_and_in_javascript() {
        let text = "\u{feff}// [1]\n[ {\"a\": [1, \"]\\\"\", {'b': 0x0a /* , */, }], c: (1, 2) + 3},\n  -1e5 , 'x' ]";
        let at = |path: &[Step]| find(text, path).map(|range| &text[range]);
        let (zero, b) = (Step::Index(0), Step::name("b"));
        let a = Step::name("a");
        assert_eq!(at(&[zero.clone(), a.clone(), Step::Index(1)]), Some("\"]\\\"\""));
        assert_eq!(at(&[zero.clone(), a.clone(), Step::Index(2), b]), Some("0x0a"));
        assert_eq!(at(&[zero.clone(), Step::name("c")]), Some("(1, 2) + 3"));
        assert_eq!(at(&[Step::Index(1)]), Some("-1e5"));
        assert_eq!(at(&[Step::Index(2)]), Some("'x'"));
        assert_eq!(
            (at(&[Step::Index(3)]), at(std::slice::from_ref(&a)), at(&[zero, a, Step::Index(3)])),
            (None, None, None)
        );
        assert_eq!(lines(text, &[]), [2, 3, 3]);
    }

    #[test]
    fn ends_at_any_text() {
        for text in ["", "[", "{", "\"", "'\\", "[{\"a\"", "{a:", "]", "/*", "//", "[,]", "(((", "[1,,2]", "{\"a\" 1}"]
        {
            for path in [&[Step::Index(0)][..], &[Step::name("a")], &[]] {
                let found = find(text, path);
                assert!(found.is_none_or(|range| text.get(range).is_some()), "{text}");
            }
        }
    }
}
