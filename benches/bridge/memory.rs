//! The resident memory of many profiles and devices.

use testing::figures::Figures;

use crate::{bridge_process::BridgeProcess, input::Input, network::Network};

const PROFILES: usize = 1000;
const DEVICES: usize = 100_000;

/// Measures once an uplink of each device is dealt with.
pub(crate) async fn measure(figures: &mut Figures) {
    let input = Input::new(PROFILES, DEVICES);
    let network = Network::start(&input).await;
    network.fill(&input, DEVICES);
    let bridge = BridgeProcess::start(&network, &network.redis_to_mqtt());
    bridge.until_finished(DEVICES).await;
    figures.add("1,000 profiles, 100,000 devices", format!("{:.0} MB", bridge.resident_mb()), "≤ 300 MB");
    figures.add("of the uplinks, decoded", format!("{:.1}%", bridge.decoded() as f64 * 100.0 / DEVICES as f64), "");
}
