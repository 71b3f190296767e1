//! The devices that are chosen in the table.

use std::collections::HashSet;

use types::DevId;

/// Each of them once. They are as many as an address or a form has place for.
pub(super) fn each_once(sent: impl IntoIterator<Item = DevId>) -> Vec<DevId> {
    let mut known = HashSet::new();
    sent.into_iter().filter(|dev_id| known.insert(dev_id.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_is_chosen_once_and_none_is_lost() {
        let device = |number: usize| format!("dev-{number}").parse::<DevId>().unwrap();
        let chosen = each_once((0..1000).chain(500..1500).map(device));
        assert_eq!(chosen, (0..1500).map(device).collect::<Vec<_>>());
    }
}
