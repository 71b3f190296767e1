//! Text from others as it can be shown: nothing in it steers a terminal, turns the direction of writing or hides.

/// The same text with U+FFFD for every character that would do something else than take its place.
pub fn inert(text: &str) -> String {
    text.chars().map(inert_character).collect()
}

/// The character itself if it takes one place on a terminal and does nothing else there; a blank for a tab.
pub(crate) fn inert_character(character: char) -> char {
    match character {
        '\t' => ' ',
        // They turn the direction of writing, or cannot be seen.
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_or_a_reader_is_replaced() {
        for (text, shown) in [
            ("21.5 °C, größer ∑ 温度 👍", "21.5 °C, größer ∑ 温度 👍"),
            ("a\tb", "a b"),
            ("a\u{1b}[2Jb\n\r\u{7}\u{9b}", "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{202e}b\u{2066}c\u{61c}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("a\u{200b}b\u{feff}c\u{e0041}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
        ] {
            assert_eq!(inert(text), shown);
        }
    }
}
