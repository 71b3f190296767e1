//! `airlock devices set`: changes a device by the given options.

use anyhow::ensure;
use api::rest::handler::{Device, LorawanDevice};
use client::handler::HandlerClient;
use types::{AppId, DevId};

use super::{args::DeviceChange, read};
use crate::{commands::flag, exit::CommandError};

pub(super) async fn run(
    handler: &HandlerClient,
    app_id: &AppId,
    dev_id: &DevId,
    change: DeviceChange,
) -> anyhow::Result<()> {
    ensure!(change.changes_something(), CommandError::invalid("nothing to change: see `airlock devices set --help`"));
    let is_breaking = change.app_eui.is_some() || change.dev_eui.is_some() || change.dev_addr.is_some();
    ensure!(
        !is_breaking || change.is_override,
        CommandError::invalid(
            "a running device keeps its EUIs and address, so this would break its connection: use --override if it has the new ones"
        )
    );
    let (mut device, mut lorawan) = read(handler, app_id, dev_id).await?;
    apply_to_lorawan(&change, &mut lorawan);
    apply(change, &mut device);
    device.lorawan_device = Some(lorawan);
    Ok(handler.set_device(device.into()).await?)
}

impl DeviceChange {
    fn changes_something(&self) -> bool {
        // -1 keeps a counter, and to allow changes is none.
        *self != Self { fcnt_up: -1, fcnt_down: -1, is_override: self.is_override, ..Self::default() }
    }
}

fn apply(change: DeviceChange, device: &mut Device) {
    replace(&mut device.description, change.description);
    replace(&mut device.latitude, change.latitude);
    replace(&mut device.longitude, change.longitude);
    replace(&mut device.altitude, change.altitude);
    for key in &change.attr_remove {
        device.attributes.remove(key);
    }
    device.attributes.extend(change.attr_set);
}

fn apply_to_lorawan(change: &DeviceChange, lorawan: &mut LorawanDevice) {
    replace(&mut lorawan.app_eui, change.app_eui);
    replace(&mut lorawan.dev_eui, change.dev_eui);
    lorawan.dev_addr = change.dev_addr.or(lorawan.dev_addr);
    lorawan.app_key = change.app_key.clone().or(lorawan.app_key.take());
    lorawan.app_s_key = change.app_s_key.clone().or(lorawan.app_s_key.take());
    lorawan.nwk_s_key = change.nwk_s_key.clone().or(lorawan.nwk_s_key.take());
    // -1 keeps the counter.
    replace(&mut lorawan.f_cnt_up, u32::try_from(change.fcnt_up).ok());
    replace(&mut lorawan.f_cnt_down, u32::try_from(change.fcnt_down).ok());
    replace(&mut lorawan.uses32_bit_f_cnt, flag(change.fcnt_32_bit, change.fcnt_16_bit));
    replace(&mut lorawan.disable_f_cnt_check, flag(change.disable_fcnt_check, change.enable_fcnt_check));
}

fn replace<T>(value: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *value = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_given_options_change() {
        let attributes = [("a", "1"), ("b", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut device = Device { altitude: 3, attributes: attributes.into(), ..Device::default() };
        let mut lorawan = LorawanDevice { f_cnt_up: 7, f_cnt_down: 8, uses32_bit_f_cnt: true, ..Default::default() };
        let change = DeviceChange {
            description: Some("by the door".to_owned()),
            attr_remove: vec!["a".to_owned()],
            attr_set: vec![("b".to_owned(), "3".to_owned()), ("c".to_owned(), "4:5".to_owned())],
            fcnt_up: -1,
            fcnt_down: 0,
            fcnt_16_bit: true,
            ..DeviceChange::default()
        };
        apply_to_lorawan(&change, &mut lorawan);
        apply(change, &mut device);
        assert_eq!((device.description.as_str(), device.altitude), ("by the door", 3));
        assert_eq!(
            device.attributes.into_iter().collect::<Vec<_>>(),
            [("b".to_owned(), "3".to_owned()), ("c".to_owned(), "4:5".to_owned())]
        );
        assert_eq!((lorawan.f_cnt_up, lorawan.f_cnt_down, lorawan.uses32_bit_f_cnt), (7, 0, false));
        assert!(!lorawan.disable_f_cnt_check);
    }
}
