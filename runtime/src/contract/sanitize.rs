//! Text from others as it can be shown: nothing in it steers a terminal, turns the direction of writing or hides.

/// The same text with U+FFFD for every character that does something else than to be seen in its place.
///
/// Accents and other marks stay, which stand on the character before them, and so do characters that take two places.
pub fn sanitize(text: &str) -> String {
    text.chars().map(sanitize_char).collect()
}

/// The character itself if all that it does on a terminal is to be seen; a blank for a tab.
pub fn sanitize_char(character: char) -> char {
    match character {
        '\t' => ' ',
        // Others than these may end a line.
        '\u{2028}' | '\u{2029}' => '\u{fffd}',
        _ if character.is_control() || is_hidden(character) => '\u{fffd}',
        _ => character,
    }
}

/// Whether nothing is seen of a character: those that Unicode says to ignore where they are not known, among them all
/// that turn the direction of writing, and the anchors of annotations.
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
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_or_a_reader_is_replaced() {
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
    fn whatever_takes_no_place_is_replaced_or_is_a_mark_on_another() {
        use unicode_width::UnicodeWidthChar as _;
        // Without the marks, which are in blocks of their own or among the letters that they belong to.
        let blocks = ['\0'..='\u{2ff}', '\u{2000}'..='\u{20cf}', '\u{2100}'..='\u{2ce0}', '\u{fe00}'..='\u{fe0f}']
            .into_iter()
            .chain(['\u{fe30}'..='\u{ffff}', '\u{1d173}'..='\u{1d17a}', '\u{e0000}'..='\u{effff}']);
        for character in blocks.flatten() {
            let shown = sanitize_char(character);
            assert!(shown.width() > Some(0), "{character:?}");
        }
    }
}
