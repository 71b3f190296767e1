//! The step for each device of a file. Everything that the handler would refuse is found before anything is written.

use std::collections::{HashMap, HashSet};

use api::rest::handler::{Device, LorawanDevice};
use types::{AppEui, AppId, DevEui, DevId};

use super::super::{
    file::{BadField, Cells, Row},
    new_device,
};

pub(super) struct BadRow {
    pub(super) number: usize,
    pub(super) field: BadField,
}

/// A device as it shall be.
pub(super) struct Planned {
    pub(super) number: usize,
    pub(super) device: Device,
    pub(super) step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Created,
    Updated,
    Unchanged,
}

impl Step {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

type Euis = (AppEui, DevEui);

/// State while rows are read.
struct Plan<'a> {
    app_id: &'a AppId,
    app_eui: AppEui,
    is_override: bool,
    registered: HashMap<String, Device>,
    /// The registered device that has a DevEUI, if only one has it.
    by_dev_eui: HashMap<DevEui, Option<String>>,
    /// The rows that have an id.
    ids: HashMap<String, usize>,
}

/// The steps for all rows, or else all rows that are bad.
pub(super) fn plan(
    rows: Vec<Row>,
    registered: Vec<Device>,
    (app_id, app_eui): (&AppId, AppEui),
    is_override: bool,
) -> Result<Vec<Planned>, Vec<BadRow>> {
    let mut by_dev_eui = HashMap::new();
    for device in &registered {
        let id = by_dev_eui.entry(euis(device).1).or_insert_with(|| Some(device.dev_id.clone()));
        *id = id.take().filter(|id| *id == device.dev_id);
    }
    let registered = registered.into_iter().map(|device| (device.dev_id.clone(), device)).collect();
    let mut plan = Plan { app_id, app_eui, is_override, registered, by_dev_eui, ids: HashMap::new() };
    let (mut planned, mut bad) = (Vec::new(), Vec::new());
    for Row { number, cells } in rows {
        match cells.and_then(|cells| plan.device(number, &cells)) {
            Ok(device) => planned.push(device),
            Err(field) => bad.push(BadRow { number, field }),
        }
    }
    bad.extend(plan.taken(&planned));
    bad.sort_by_key(|bad| bad.number);
    if bad.is_empty() { Ok(planned) } else { Err(bad) }
}

impl Plan<'_> {
    fn device(&mut self, number: usize, cells: &Cells) -> Result<Planned, BadField> {
        let dev_id = self.dev_id(cells)?;
        if let Some(earlier) = self.ids.insert(dev_id.to_string(), number) {
            return Err(bad("dev_id", format!("row {earlier} has the device {dev_id}, too")));
        }
        let before = self.registered.get(dev_id.as_str());
        let mut device = match before {
            Some(before) => before.clone(),
            None => new_device(self.app_id.clone(), dev_id, self.app_eui, DevEui::default()),
        };
        cells.apply(&mut device)?;
        check(&device)?;
        if let Some(before) = before.filter(|_| !self.is_override) {
            check_identity(before, &device)?;
        }
        let step = match before {
            None => Step::Created,
            Some(before) if *before == device => Step::Unchanged,
            Some(_) => Step::Updated,
        };
        Ok(Planned { number, device, step })
    }

    /// The id in the file, or that of the registered device with the DevEUI, or else one that is made of it.
    fn dev_id(&self, cells: &Cells) -> Result<DevId, BadField> {
        if let Some(dev_id) = cells.parsed("dev_id")? {
            return Ok(dev_id);
        }
        let dev_eui: Option<DevEui> = cells.parsed("dev_eui")?;
        let dev_eui = dev_eui.filter(|dev_eui| !dev_eui.is_zero());
        let dev_eui =
            dev_eui.ok_or_else(|| bad("dev_id", "is missing, and there is no DevEUI to make it of".into()))?;
        let known = self.by_dev_eui.get(&dev_eui).cloned().flatten();
        let dev_id = known.unwrap_or_else(|| format!("eui-{dev_eui}").to_lowercase());
        dev_id.parse().map_err(|error: types::IdError| bad("dev_id", error.to_string()))
    }

    /// The rows with a pair of EUIs that another device has, in the file or beside it.
    fn taken(&self, planned: &[Planned]) -> Vec<BadRow> {
        let planned_ids: HashSet<_> = planned.iter().map(|planned| planned.device.dev_id.as_str()).collect();
        let beside = self.registered.values().filter(|device| !planned_ids.contains(device.dev_id.as_str()));
        let mut holders: HashMap<Euis, String> =
            beside.map(|device| (euis(device), format!("the device {}", device.dev_id))).collect();
        let mut taken = Vec::new();
        for Planned { number, device, .. } in planned {
            let holder = holders.insert(euis(device), format!("row {number}"));
            taken.extend(holder.map(|holder| BadRow {
                number: *number,
                field: bad("dev_eui", format!("{holder} has the same AppEUI and DevEUI")),
            }));
        }
        taken
    }
}

/// Checks what the handler checks.
fn check(device: &Device) -> Result<(), BadField> {
    let refused = |error: handler::Error| bad("", error.to_string());
    handler::device::Device::try_from(device.clone()).and_then(|device| device.check()).map_err(refused)
}

/// A running device keeps its EUIs and its address.
fn check_identity(before: &Device, after: &Device) -> Result<(), BadField> {
    let name = match (before.lorawan_device.as_ref(), after.lorawan_device.as_ref()) {
        (Some(before), Some(after)) if before.app_eui != after.app_eui => "app_eui",
        (Some(before), Some(after)) if before.dev_eui != after.dev_eui => "dev_eui",
        (Some(before), Some(after)) if address(before) != address(after) => "dev_addr",
        _ => return Ok(()),
    };
    Err(bad(name, "would change, and break the connection to a running device: use --override".to_owned()))
}

fn address(lorawan: &LorawanDevice) -> types::DevAddr {
    lorawan.dev_addr.unwrap_or_default()
}

fn euis(device: &Device) -> Euis {
    device.lorawan_device.as_ref().map(|lorawan| (lorawan.app_eui, lorawan.dev_eui)).unwrap_or_default()
}

fn bad(name: &'static str, reason: String) -> BadField {
    BadField { name, reason }
}
