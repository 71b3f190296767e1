//! A script without its comments and strings, told apart without parsing it: it may be nested without bound, and may be
//! meant to be JavaScript without being it.

/// Characters that may stand before a regular expression, where a division cannot be.
const BEFORE_REGEXP: &str = "(,=:[!&|?{};+-*%<>~^";

/// The text with blanks in place of comments, and of strings that are not one of `names`.
pub(in super::super) fn code(text: &str, names: &[&str]) -> String {
    let mut code = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, ';');
    // What has no end is looked for once.
    let mut endless = [false; 2];
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '/' if rest.starts_with("//") => Some(line_end(rest)),
            '/' if rest.starts_with("/*") && !endless[0] => {
                let end = rest[2..].find("*/").map(|at| at + 4);
                endless[0] = end.is_none();
                end
            }
            '/' if BEFORE_REGEXP.contains(before) => regexp_end(rest),
            '`' if !endless[1] => {
                let end = string_end(rest, '`', rest.len());
                endless[1] = end.is_none();
                end
            }
            '\'' | '"' => {
                let line = line_end(rest);
                Some(string_end(rest, first, line).unwrap_or(line))
            }
            _ => None,
        };
        let (part, behind) = rest.split_at(end.unwrap_or(first.len_utf8()));
        let is_kept = end.is_none() || names.contains(&part.trim_matches(first)) && first != '/';
        match is_kept {
            true => code.push_str(part),
            false => code.extend(part.chars().map(|own| if own == '\n' { '\n' } else { ' ' })),
        }
        if end.is_none() && !first.is_whitespace() {
            before = first;
        } else if end.is_some() && !part.starts_with("//") && !part.starts_with("/*") {
            before = 'x';
        }
        rest = behind;
    }
    code
}

fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Returns the end of the string that begins the text, if it is before `max`; a backslash takes what follows it.
fn string_end(text: &str, quote: char, max: usize) -> Option<usize> {
    let mut chars = text[..max].char_indices().skip(1);
    while let Some((at, own)) = chars.next() {
        match own {
            '\\' => _ = chars.next(),
            _ if own == quote => return Some(at + own.len_utf8()),
            _ => {}
        }
    }
    None
}

/// The same for a regular expression, where a slash in brackets is no end.
fn regexp_end(text: &str) -> Option<usize> {
    let (mut chars, mut is_class) = (text[..line_end(text)].char_indices().skip(1), false);
    while let Some((at, own)) = chars.next() {
        match own {
            '\\' => _ = chars.next(),
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_comments_and_strings_that_are_no_names() {
        for (text, expected) in [
            ("a('x') // c\nd", "a(   )     \nd"),
            ("a /* b\nc */ d", "a     \n     d"),
            ("e['b'] = `c`", "e['b'] =    "),
            ("a = /['\"`]/g; b", "a =        g; b"),
            ("a / b / c", "a / b / c"),
            ("don't\nb", "don  \nb"),
            ("'a\\'b' c", "       c"),
            ("a /* b", "a /* b"),
            ("a `b", "a `b"),
            ("'http://a' b", "           b"),
        ] {
            assert_eq!(code(text, &["b"]), expected, "{text}");
        }
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        for part in ["/*", "`", "'\\", "=/", "/", "\\'"] {
            let text = part.repeat(50_000);
            assert_eq!(code(&text, &[]).len(), text.len());
        }
    }
}
