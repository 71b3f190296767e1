//! Steps through JSON without spaces. It need not be valid: all that counts is that a text is always cut at the same
//! places, also after values in it were replaced by others.

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The bytes before this place.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(crate) fn is_at(&self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    /// Shows the name of each member of an object. `member` passes its value.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.sequence((b'{', b'}'), |scan| {
            let name = scan.string()?;
            scan.pass(b':')?;
            member(scan, name)
        })
    }

    /// Shows each element of an array, which `element` passes.
    pub(crate) fn array(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.sequence((b'[', b']'), element)
    }

    /// Passes a value of any kind.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        let start = self.at;
        match self.peek()? {
            b'"' => _ = self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => {
                while self.peek().is_some_and(|byte| matches!(byte, b'-' | b'+' | b'.') || byte.is_ascii_alphanumeric())
                {
                    self.at += 1;
                }
            }
        }
        self.text.get(start..self.at).filter(|value| !value.is_empty())
    }

    fn sequence(&mut self, (open, close): (u8, u8), mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.pass(open)?;
        if self.pass(close).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.pass(close).is_some() {
                return Some(());
            }
            self.pass(b',')?;
        }
    }

    /// Passes a string. Returns what is between its quotes, as it is written.
    fn string(&mut self) -> Option<&'a str> {
        self.pass(b'"')?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let string = self.text.get(start..self.at);
        self.at += 1;
        string
    }

    /// Passes an object or an array with all that is in it.
    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn pass(&mut self, byte: u8) -> Option<()> {
        self.is_at(byte).then(|| self.at += 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Option<Vec<(&str, &str)>> {
        let (mut scan, mut members) = (Scan::new(text), Vec::new());
        scan.object(|scan, name| {
            members.push((name, scan.value()?));
            Some(())
        })?;
        scan.is_at_end().then_some(members)
    }

    #[test]
    fn members_are_cut_where_their_values_end() {
        let text = r#"{"a":-1.5e3,"b\"":"x\\\",}","c":{"d":["]}",{}]},"é":[],"":null}"#;
        let expected =
            [("a", "-1.5e3"), (r#"b\""#, r#""x\\\",}""#), ("c", r#"{"d":["]}",{}]}"#), ("é", "[]"), ("", "null")];
        assert_eq!(members(text).unwrap(), expected);
        assert_eq!(members("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_not_an_object_without_spaces_is_refused() {
        for text in
            ["", "{", "[]", "1", "{}{}", "{} ", r#"{"a": 1}"#, r#"{"a":}"#, r#"{"a":1,}"#, r#"{"a":1"#, r#"{"a":"\"#]
        {
            assert_eq!(members(text), None, "{text}");
        }
    }
}
