//! The cryptography of LoRaWAN 1.0 joins: session keys, and the encryption of join accepts.

use aws_lc_rs::cipher::{AES_128, DecryptingKey, DecryptionContext, UnboundCipherKey};
use types::{AppKey, AppNonce, AppSKey, DevNonce, NetId, NwkSKey};
use zeroize::Zeroizing;

use crate::{
    Error,
    network::lorawan::crypto::{BLOCK_BYTES, encrypt_blocks},
};

/// Encrypts the content of a join accept, whose length is a multiple of 16 bytes.
///
/// LoRaWAN uses the AES decrypt operation here, so that devices only need to implement encryption.
pub(super) fn encrypt_join_accept(key: &AppKey, content: &mut [u8]) -> Result<(), Error> {
    let encrypted = UnboundCipherKey::new(&AES_128, key.as_bytes())
        .and_then(DecryptingKey::ecb)
        .and_then(|key| key.decrypt(content, DecryptionContext::None).map(drop));
    encrypted.map_err(|_| Error::Crypto("encrypt a join accept"))
}

pub(super) fn session_keys(
    key: &AppKey,
    app_nonce: AppNonce,
    net_id: NetId,
    dev_nonce: DevNonce,
) -> Result<(NwkSKey, AppSKey), Error> {
    let derive = |purpose: u8| {
        let reversed = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
        let parts = [
            &[purpose][..],
            &reversed(app_nonce.as_bytes()),
            &reversed(net_id.as_bytes()),
            &reversed(dev_nonce.as_bytes()),
        ];
        let mut block = Zeroizing::new([0; BLOCK_BYTES]);
        for (target, byte) in block.iter_mut().zip(parts.concat()) {
            *target = byte;
        }
        encrypt_blocks(key.as_bytes(), &mut *block).map(|()| *block)
    };
    Ok((NwkSKey::new(derive(1)?), AppSKey::new(derive(2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the documentation of lora-packet.
    // Conformance: MIC, session keys and join-accept of LoRaWAN 1.0
    #[test]
    fn derives_session_keys_like_an_independent_implementation() {
        let key = "B6B53F4A168A7A88BDF7EA135CE9CFCA".parse().unwrap();
        let (app_nonce, net_id, dev_nonce) =
            ("E5063A".parse().unwrap(), "000013".parse().unwrap(), "CC85".parse().unwrap());
        let (nwk_s_key, app_s_key) = session_keys(&key, app_nonce, net_id, dev_nonce).unwrap();
        assert_eq!(nwk_s_key.to_hex(), "2C96F7028184BB0BE8AA49275290D4FC");
        assert_eq!(app_s_key.to_hex(), "F3A5C8F0232A38C144029C165865802C");
    }
}
