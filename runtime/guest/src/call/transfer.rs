//! Moves values from one realm to another.
//!
//! Each source has its own realm, so that its changes to `Object.prototype` do not affect the others. A value that is
//! passed on gets the prototypes of the next realm: there it must be `instanceof Object`.

use crate::guest::Guest;
use crate::js::{Primitive, Realm, Value};

/// Gives `value`, and all plain data in it, the prototypes of `realm`. Instances of the source's own classes keep theirs.
/// Runs no script: getters are not called.
pub(crate) fn transfer(guest: &Guest, value: &Value, realm: Realm) {
    transfer_to_depth(guest, value, realm, guest.limits().fields_depth_max);
}

fn transfer_to_depth(guest: &Guest, value: &Value, realm: Realm, depth_left: u32) {
    // An object that has been moved returns false, so cycles end here.
    if depth_left == 0 || value.primitive() != Primitive::Object || !value.move_to_realm(&guest.realms, realm) {
        return;
    }
    if value.is_array() {
        let length = value.length().unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
        for element in (0..length).filter_map(|index| value.own_plain_at(index)) {
            transfer_to_depth(guest, &element, realm, depth_left - 1);
        }
    } else if let Ok(keys) = value.keys() {
        for member in keys.iter().filter_map(|key| value.own_plain(key)) {
            transfer_to_depth(guest, &member, realm, depth_left - 1);
        }
    }
}
