//! The cryptography of LoRaWAN 1.0: message integrity codes, and the encryption of payloads.

use aws_lc_rs::{
    cipher::{AES_128, EncryptingKey, UnboundCipherKey},
    cmac,
    constant_time::verify_slices_are_equal,
};
use types::DevAddr;

use crate::Error;

pub(crate) const MIC_BYTES: usize = 4;
pub(crate) const BLOCK_BYTES: usize = 16;
const KEY_BYTES: usize = 16;

/// The direction of a data frame, as its blocks encode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Uplink = 0,
    Downlink = 1,
}

/// Input of the cipher blocks of a data frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonce {
    pub(super) direction: Direction,
    pub(super) dev_addr: DevAddr,
    /// The full 32 bits of the frame counter.
    pub(super) f_cnt: u32,
}

/// The message integrity code of a frame: the first bytes of its AES-CMAC.
pub(crate) fn mic(key: &[u8; KEY_BYTES], frame: &[u8]) -> Result<[u8; MIC_BYTES], Error> {
    let tag = cmac::Key::new(cmac::AES_128, key).and_then(|key| cmac::sign(&key, frame));
    let tag = tag.map_err(|_| Error::Crypto("sign a frame"))?;
    tag.as_ref().first_chunk().copied().ok_or(Error::Crypto("sign a frame"))
}

/// Compares two message integrity codes in constant time.
pub(crate) fn is_same_mic(left: &[u8; MIC_BYTES], right: &[u8; MIC_BYTES]) -> bool {
    verify_slices_are_equal(left, right).is_ok()
}

/// Encrypts whole blocks.
pub(crate) fn encrypt_blocks(key: &[u8; KEY_BYTES], blocks: &mut [u8]) -> Result<(), Error> {
    let encrypted =
        UnboundCipherKey::new(&AES_128, key).and_then(EncryptingKey::ecb).and_then(|key| key.encrypt(blocks).map(drop));
    encrypted.map_err(|_| Error::Crypto("encrypt a block"))
}

impl Nonce {
    /// The message integrity code of a data frame, which also covers what the frame does not contain.
    pub(super) fn mic(self, key: &[u8; KEY_BYTES], frame: &[u8]) -> Result<[u8; MIC_BYTES], Error> {
        let length = u8::try_from(frame.len()).map_err(|_| Error::invalid("Frame", "it is longer than 255 bytes"))?;
        mic(key, &[&self.block(0x49, length)[..], frame].concat())
    }

    /// Encrypts or decrypts a payload, which is the same operation.
    pub(super) fn crypt(self, key: &[u8; KEY_BYTES], payload: &[u8]) -> Result<Vec<u8>, Error> {
        let count = payload.len().div_ceil(BLOCK_BYTES);
        let mut stream: Vec<u8> = (1..=count).flat_map(|number| self.block(0x01, number as u8)).collect();
        encrypt_blocks(key, &mut stream)?;
        Ok(payload.iter().zip(stream).map(|(byte, key)| byte ^ key).collect())
    }

    fn block(self, kind: u8, last: u8) -> [u8; BLOCK_BYTES] {
        let [a, b, c, d] = *self.dev_addr.as_bytes();
        let [e, f, g, h] = self.f_cnt.to_le_bytes();
        [kind, 0, 0, 0, 0, self.direction as u8, d, c, b, a, e, f, g, h, 0, last]
    }
}
