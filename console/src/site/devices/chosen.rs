//! The devices that are chosen for a chart.

use types::DevId;

/// Maximum number of devices that stay chosen: more than a chart has, so that one can take the place of another.
pub(super) const CHOSEN_MAX: usize = 32;

/// The first of the devices that were sent, each once.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) devices: Vec<DevId>,
    /// True if there were more of them.
    pub(super) is_cut: bool,
}

impl FromIterator<DevId> for Chosen {
    fn from_iter<I: IntoIterator<Item = DevId>>(sent: I) -> Self {
        let mut chosen = Self::default();
        for dev_id in sent {
            if chosen.devices.contains(&dev_id) {
                continue;
            }
            if chosen.devices.len() >= CHOSEN_MAX {
                chosen.is_cut = true;
                break;
            }
            chosen.devices.push(dev_id);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_devices_stay_chosen_and_no_more() {
        let device = |number: usize| format!("dev-{number}").parse::<DevId>().unwrap();
        let all: Chosen = (0..CHOSEN_MAX).chain(0..CHOSEN_MAX).map(device).collect();
        assert_eq!((all.devices.len(), all.is_cut), (CHOSEN_MAX, false), "each is there once");
        let mut looked_at = 0;
        let cut: Chosen = (0..1000).inspect(|_| looked_at += 1).map(device).collect();
        assert_eq!((cut.devices, cut.is_cut), (all.devices, true));
        assert_eq!(looked_at, CHOSEN_MAX + 1);
    }
}
