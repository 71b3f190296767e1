//! Random keys and EUIs.

use types::{DevEui, Random};

/// Default length of a key, in bytes.
pub const KEY_BYTES: usize = 16;

/// Generates a key, for example for `AppKey::new`.
pub fn random_key(random: &dyn Random) -> [u8; KEY_BYTES] {
    random.array()
}

/// Generates an EUI outside all assigned blocks: its first byte is zero.
pub fn random_eui(random: &dyn Random) -> DevEui {
    let mut bytes = random.array::<{ DevEui::LENGTH }>();
    bytes[0] = 0;
    DevEui::new(bytes)
}

#[cfg(test)]
mod tests {
    use testing::FixedRandom;

    use super::*;

    // Conformance: Random keys and EUIs; EUIs and payloads in hexadecimal
    // Conformance: Generated keys have 16 bytes
    #[test]
    fn every_byte_is_random_except_the_first_of_an_eui() {
        let ones = FixedRandom::new([1]);
        assert_eq!(random_key(&ones), [1; 16]);
        assert_eq!(random_eui(&ones).to_hex(), "0001010101010101");
    }
}
