//! Texts that show by themselves that they are ours: bytes and an authentication code over them, as one word.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::Keys;

/// How many bytes of the code go into a text.
const CODE_BYTES: usize = 16;

impl Keys {
    /// Writes bytes with their code. `place` says what they are for; they are worth nothing elsewhere.
    pub fn write_coded(&self, place: &str, plain: &[u8]) -> String {
        let code = self.sign(place, plain);
        URL_SAFE_NO_PAD.encode([plain, &code.as_ref()[..CODE_BYTES]].concat())
    }

    /// The bytes that were written for the same `place`; none when the text is not ours.
    pub fn read_coded<const COUNT: usize>(&self, place: &str, text: &str) -> Option<[u8; COUNT]> {
        let (plain, code) = split(text)?;
        let expected = self.sign(place, &plain);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected.as_ref()[..CODE_BYTES], &code).ok()?;
        Some(plain)
    }
}

/// What a text says, whoever wrote it: enough to look for what its code is checked with.
pub fn plain_of<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    split(text).map(|(plain, _)| plain)
}

fn split<const COUNT: usize>(text: &str) -> Option<([u8; COUNT], [u8; CODE_BYTES])> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (plain, code) = bytes.split_at_checked(COUNT)?;
    Some((plain.try_into().ok()?, code.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::seal::Owner;

    #[test]
    fn a_text_is_read_only_whole_and_where_it_belongs() {
        let keys = Keys::new(Owner::Account, &[7; 32]).unwrap();
        let text = keys.write_coded("here", b"plain");
        assert_eq!(keys.read_coded("here", &text), Some(*b"plain"));
        assert_eq!(plain_of(&text), Some(*b"plain"));
        assert_eq!(keys.read_coded::<5>("there", &text), None);
        assert_eq!(keys.read_coded::<4>("here", &text), None);
        for broken in
            ["", "AAAA", &text[1..], &text[..text.len() - 2], &format!("{text}AA"), &format!("B{}", &text[1..])]
        {
            assert_eq!(keys.read_coded::<5>("here", broken), None, "{broken}");
        }
    }
}
