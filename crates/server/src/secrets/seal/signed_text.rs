//! Signed texts: a payload and a truncated HMAC over it, in base64url.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::SealingKeys;

/// Number of bytes of the HMAC that a text carries.
const MAC_BYTES: usize = 16;

impl SealingKeys {
    /// Signs a payload; it verifies only in the same context.
    pub fn sign_text(&self, context: &str, payload: &[u8]) -> String {
        let mac = self.mac(context, payload);
        URL_SAFE_NO_PAD.encode([payload, &mac.as_ref()[..MAC_BYTES]].concat())
    }

    /// The payload of a text that was signed in this context; `None` when the signature does not match.
    pub fn verify_text<const COUNT: usize>(&self, context: &str, text: &str) -> Option<[u8; COUNT]> {
        let (payload, mac) = split(text)?;
        let expected = self.mac(context, &payload);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected.as_ref()[..MAC_BYTES], &mac).ok()?;
        Some(payload)
    }
}

/// The payload of a text whoever wrote it: for finding the context to verify it in, and for nothing else.
pub fn unverified_payload<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    split(text).map(|(payload, _)| payload)
}

fn split<const COUNT: usize>(text: &str) -> Option<([u8; COUNT], [u8; MAC_BYTES])> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (payload, mac) = bytes.split_at_checked(COUNT)?;
    Some((payload.try_into().ok()?, mac.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::seal::KeyOwner;

    #[test]
    fn verifies_a_text_only_whole_and_in_its_context() {
        let keys = SealingKeys::new(KeyOwner::Account, &[7; 32]).unwrap();
        let text = keys.sign_text("here", b"plain");
        assert_eq!(keys.verify_text("here", &text), Some(*b"plain"));
        assert_eq!(unverified_payload(&text), Some(*b"plain"));
        assert_eq!(keys.verify_text::<5>("there", &text), None);
        assert_eq!(keys.verify_text::<4>("here", &text), None);
        for broken in
            ["", "AAAA", &text[1..], &text[..text.len() - 2], &format!("{text}AA"), &format!("B{}", &text[1..])]
        {
            assert_eq!(keys.verify_text::<5>("here", broken), None, "{broken}");
        }
    }
}
