//! Uplinks of the page as files of each layout have them.

use serde_json::{Value, json};

use crate::layout::Layout;

/// An uplink with the value that the decoder returns, in TS013's notation where the layout wants that; none if examples
/// of this layout are written in another way.
pub(crate) fn uplink_example(layout: Layout, port: u8, payload: &[u8], value: &Value) -> Option<Value> {
    let (name, digits) = (description(port, payload), hex::encode(payload));
    let input = json!({"fPort": port, "bytes": payload});
    match layout {
        Layout::Own => Some(json!({"description": name, "port": port, "bytes": digits, "output": value})),
        Layout::DeviceRepository => Some(json!({"description": name, "input": input, "output": value})),
        Layout::DeviceProfile => Some(json!({"name": name, "input": input, "expected": value})),
        Layout::Package => Some(json!({"type": "uplink", "description": name, "input": input, "output": value})),
        Layout::Milesight | Layout::Lines => None,
    }
}

/// The name of an example.
pub(crate) fn description(port: u8, payload: &[u8]) -> String {
    let bytes = if payload.is_empty() { "no bytes".to_owned() } else { hex::encode(payload) };
    format!("{bytes} on port {port}")
}
