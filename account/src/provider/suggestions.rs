//! Usernames for people whom a provider introduces.

use types::{Random, Username};

/// Maximum length of the part that comes from the provider: room for a suffix.
const BASE_BYTES_MAX: usize = 27;
const NUMBERS: std::ops::RangeInclusive<u32> = 2..=9;
const FALLBACK: &str = "user";

/// Valid usernames, the best first: like the name at the provider or the e-mail address, then with a number, and last
/// with something that nobody else has.
pub(super) fn suggestions(preferred: Option<&str>, email: &str, random: &dyn Random) -> Vec<Username> {
    let preferred = preferred.filter(|name| name.chars().any(|character| character.is_ascii_alphanumeric()));
    let base = simplified(preferred.unwrap_or(email));
    let numbered = NUMBERS.map(|number| format!("{base}-{number}"));
    let unique = format!("{base}-{}", hex::encode(random.array::<4>()));
    let all = std::iter::once(base.clone()).chain(numbered).chain([unique]);
    all.filter_map(|name| name.parse().ok()).collect()
}

/// The part before an @, in lowercase letters and digits with single dashes.
fn simplified(text: &str) -> String {
    let local = text.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let is_other = |character: char| !character.is_ascii_lowercase() && !character.is_ascii_digit();
    let words: Vec<_> = local.split(is_other).filter(|word| !word.is_empty()).collect();
    let mut base = words.join("-");
    base.truncate(BASE_BYTES_MAX);
    let base = base.trim_end_matches('-');
    if base.len() < 2 { FALLBACK.to_owned() } else { base.to_owned() }
}

#[cfg(test)]
mod tests {
    use testing::CountingRandom;

    use super::*;

    #[test]
    fn suggestions_are_valid_and_like_the_name_elsewhere() {
        let long = "x".repeat(100);
        for (preferred, email, expected) in [
            (Some("Alice.Liddell"), "a@example.com", "alice-liddell"),
            (Some("alice@example.org"), "a@example.com", "alice"),
            (None, "Alice+lists@example.com", "alice-lists"),
            (Some("爱丽丝"), "alice@example.com", "alice"),
            (Some("a"), "alice@example.com", "user"),
            (Some("__--__"), "é@example.com", "user"),
            (Some(long.as_str()), "a@example.com", &long[..27]),
            (Some("abcdefghijklmnopqrstuvwxyz--z"), "a@example.com", "abcdefghijklmnopqrstuvwxyz"),
        ] {
            let all = suggestions(preferred, email, &CountingRandom::default());
            assert_eq!(all.len(), 10, "{preferred:?}");
            assert_eq!((all[0].as_str(), all[1].as_str()), (expected, &*format!("{expected}-2")), "{preferred:?}");
        }
    }
}
