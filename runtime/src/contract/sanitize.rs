//! Strips terminal escapes, bidirectional controls and invisible characters from untrusted text.

/// Replaces every control or invisible character by U+FFFD.
///
/// Combining marks and double-width characters stay.
pub fn sanitize(text: &str) -> String {
    text.chars().map(sanitize_char).collect()
}

/// Replaces a control or invisible character by U+FFFD, and a tab by a space.
pub fn sanitize_char(character: char) -> char {
    match character {
        '\t' => ' ',
        // Line and paragraph separators.
        '\u{2028}' | '\u{2029}' => '\u{fffd}',
        _ if character.is_control() || is_hidden(character) => '\u{fffd}',
        _ => character,
    }
}

/// JSON text in which the characters that [`sanitize`] would replace are escaped instead. Only strings in it can have such
/// characters; its line breaks are those of the indentation.
pub fn escape_json(json: &str) -> String {
    let mut escaped = String::new();
    for character in json.chars() {
        match character == '\n' || sanitize_char(character) == character {
            true => escaped.push(character),
            false => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}")),
        }
    }
    escaped
}

/// Returns true if a character is invisible: Unicode's default ignorable code points, which include bidirectional
/// controls, the interlinear annotation characters, and the two that XML forbids.
const fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_control_and_invisible_characters() {
        for (text, shown) in [
            ("21.5 °C, größer ∑ 温度 👍", "21.5 °C, größer ∑ 温度 👍"),
            ("gro\u{308}ßer, ไม่, हिन्दी", "gro\u{308}ßer, ไม่, हिन्दी"),
            ("a\tb", "a b"),
            ("a\u{1b}[2Jb\n\r\u{7}\u{9b}", "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{202e}b\u{2066}c\u{61c}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("a\u{200b}b\u{feff}c\u{e0041}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("a\u{ad}b\u{180e}c\u{3164}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("a\u{fe0f}b\u{e0100}c\u{2028}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
        ] {
            assert_eq!(sanitize(text), shown);
        }
    }

    #[test]
    fn every_character_without_width_is_replaced_or_a_combining_mark() {
        use unicode_width::UnicodeWidthChar as _;
        // All blocks without combining marks.
        let blocks = ['\0'..='\u{2ff}', '\u{2000}'..='\u{20cf}', '\u{2100}'..='\u{2ce0}', '\u{fe00}'..='\u{fe0f}']
            .into_iter()
            .chain(['\u{fe30}'..='\u{ffff}', '\u{1d173}'..='\u{1d17a}', '\u{e0000}'..='\u{effff}']);
        for character in blocks.flatten() {
            let shown = sanitize_char(character);
            assert!(shown.width() > Some(0), "{character:?}");
        }
    }
}
