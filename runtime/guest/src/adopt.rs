//! What one realm made, on its way into another.
//!
//! Each text has a realm of its own, so that what it does to `Object.prototype` stays with it. An object that is handed
//! on changes realms too: there it must be `instanceof Object`, and have the methods that arrays have there.

use crate::guest::Guest;
use crate::js::{Primitive, Realm, Value};

/// Makes `value` at home in `realm`, with all plain data in it. An object of a class of its own stays what it is, and no
/// script runs: what getters give is made when it is asked for.
pub(crate) fn adopt(guest: &Guest, value: &Value, realm: Realm) {
    adopt_to(guest, value, realm, guest.bounds().fields_depth_max);
}

fn adopt_to(guest: &Guest, value: &Value, realm: Realm, depth_left: u32) {
    // What has moved already is at home; so circles end here.
    if depth_left == 0 || value.primitive() != Primitive::Object || !value.move_home(&guest.realms, realm) {
        return;
    }
    if value.is_array() {
        let length = value.length().unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
        for element in (0..length).filter_map(|index| value.own_plain_at(index)) {
            adopt_to(guest, &element, realm, depth_left - 1);
        }
    } else if let Ok(keys) = value.keys() {
        for member in keys.iter().filter_map(|key| value.own_plain(key)) {
            adopt_to(guest, &member, realm, depth_left - 1);
        }
    }
}
