//! The seed that functions run with where nothing else is recorded.

use sha2::{Digest, Sha256};
use types::{AppId, DevId};

/// The usual seed of `Math.random`: the same for the same uplink, so that it can be decoded again.
pub fn usual_seed(app_id: &AppId, dev_id: &DevId, counter: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(app_id.as_str());
    hash.update([0]);
    hash.update(dev_id.as_str());
    hash.update([0]);
    hash.update(counter.to_le_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
