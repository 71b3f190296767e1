//! The step for each device of a file. Everything that the handler would refuse is found before anything is written.

use std::collections::{HashMap, HashSet};

use api::rest::handler::{Device, LorawanDevice};
use types::{AppEui, AppId, DevAddr, DevEui, DevId, DeviceParts, IdError};

use crate::{
    fields::{BadField, Cells, FIELDS, FRAME_COUNTERS, KEYS, get},
    row::Row,
};

/// The changes that a file would make.
#[derive(Default)]
pub struct Plan {
    /// The devices that can be set, in the order of the file.
    pub planned: Vec<Planned>,
    /// The rows that cannot be used, in the order of the file.
    pub bad: Vec<BadRow>,
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its number in the file.
    pub number: usize,
    /// Its first field that cannot be used.
    pub field: BadField,
}

/// A device as it shall be.
pub struct Planned {
    /// The number of its row in the file.
    pub number: usize,
    /// The device, if nothing of it has changed since it was listed.
    pub device: Device,
    /// The step that sets it.
    pub step: Step,
    /// The names of the fields that change; none for a new device.
    pub changed: Vec<&'static str>,
    cells: Cells,
}

/// A step that sets a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It is registered.
    Created,
    /// Some of its fields change.
    Updated,
    /// It is as in the file already.
    Unchanged,
}

/// Changes to the EUIs and addresses of registered devices, which break the connection to running ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// They are allowed.
    All,
    /// They are refused, with this advice.
    NoIdentity(&'static str),
}

type Euis = (AppEui, DevEui);

/// State while rows are read.
struct Planner<'a> {
    app_id: &'a AppId,
    app_eui: AppEui,
    allowed: Allowed,
    registered: HashMap<String, Device>,
    /// The registered device that has a DevEUI, if only one has it.
    by_dev_eui: HashMap<DevEui, Option<String>>,
    /// The rows that have an id.
    ids: HashMap<String, usize>,
}

impl Step {
    /// As columns and messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Planned {
    /// The device as it shall be, made of what is stored now: what the file does not change is kept, also if the device
    /// has counted frames or joined since it was listed.
    pub fn renew(&self, mut stored: Device) -> Result<Device, BadField> {
        leave_out_session(&mut stored);
        self.cells.only(&self.changed).apply(&mut stored)?;
        check(&stored)?;
        Ok(stored)
    }

    /// Returns true if it changes keys of a registered device.
    pub fn changes_keys(&self) -> bool {
        self.changed.iter().any(|name| KEYS.contains(name))
    }

    /// Returns true if it changes frame counters of a registered device.
    pub fn changes_frame_counters(&self) -> bool {
        self.changed.iter().any(|name| FRAME_COUNTERS.contains(name))
    }
}

impl Plan {
    /// Number of devices with this step.
    pub fn count(&self, step: Step) -> usize {
        self.planned.iter().filter(|planned| planned.step == step).count()
    }
}

/// The steps for all rows. New devices get `app_eui` if the file has none.
pub fn plan(rows: Vec<Row>, registered: Vec<Device>, (app_id, app_eui): (&AppId, AppEui), allowed: Allowed) -> Plan {
    let mut by_dev_eui = HashMap::new();
    for device in &registered {
        let id = by_dev_eui.entry(euis(device).1).or_insert_with(|| Some(device.dev_id.clone()));
        *id = id.take().filter(|id| *id == device.dev_id);
    }
    let registered = registered.into_iter().map(|device| (device.dev_id.clone(), device)).collect();
    let mut planner = Planner { app_id, app_eui, allowed, registered, by_dev_eui, ids: HashMap::new() };
    let mut plan = Plan::default();
    for Row { number, cells } in rows {
        match cells.and_then(|cells| planner.device(number, cells)) {
            Ok(device) => plan.planned.push(device),
            Err(field) => plan.bad.push(BadRow { number, field }),
        }
    }
    let taken = planner.taken(&plan.planned);
    let numbers: HashSet<usize> = taken.iter().map(|bad| bad.number).collect();
    plan.planned.retain(|planned| !numbers.contains(&planned.number));
    plan.bad.extend(taken);
    plan.bad.sort_by_key(|bad| bad.number);
    plan
}

/// Leaves address and keys out of an update, which keeps those that are stored: a device that joins at this moment keeps
/// its session.
pub fn leave_out_session(device: &mut Device) {
    if let Some(lorawan) = &mut device.lorawan_device {
        (lorawan.dev_addr, lorawan.app_key) = (None, None);
        (lorawan.nwk_s_key, lorawan.app_s_key) = (None, None);
    }
}

/// A device with ids and EUIs only.
pub fn new_device(app_id: AppId, dev_id: DevId, app_eui: AppEui, dev_eui: DevEui) -> Device {
    let (app_id, dev_id) = (String::from(app_id), String::from(dev_id));
    let lorawan = LorawanDevice {
        app_eui,
        dev_eui,
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        uses32_bit_f_cnt: true,
        ..LorawanDevice::default()
    };
    Device { app_id, dev_id, lorawan_device: Some(lorawan), ..Device::default() }
}

impl Planner<'_> {
    fn device(&mut self, number: usize, cells: Cells) -> Result<Planned, BadField> {
        let dev_id = self.dev_id(&cells)?;
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
        if let (Some(before), Allowed::NoIdentity(advice)) = (before, self.allowed) {
            check_identity(before, &device, advice)?;
        }
        let changed = before.map(|before| changed(before, &device));
        let step = match &changed {
            None => Step::Created,
            Some(changed) if changed.is_empty() => Step::Unchanged,
            Some(_) => Step::Updated,
        };
        Ok(Planned { number, device, step, changed: changed.unwrap_or_default(), cells })
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
        dev_id.parse().map_err(|error: IdError| bad("dev_id", error.to_string()))
    }

    /// The rows with a pair of EUIs that another device has, in the file or beside it. Many devices may have none.
    fn taken(&self, planned: &[Planned]) -> Vec<BadRow> {
        let planned_ids: HashSet<_> = planned.iter().map(|planned| planned.device.dev_id.as_str()).collect();
        let has_euis = |device: &Device| euis(device) != Euis::default();
        let beside = self.registered.values().filter(|device| !planned_ids.contains(device.dev_id.as_str()));
        let mut holders: HashMap<Euis, String> = beside
            .filter(|device| has_euis(device))
            .map(|device| (euis(device), format!("the device {}", device.dev_id)))
            .collect();
        let mut taken = Vec::new();
        for Planned { number, device, .. } in planned.iter().filter(|planned| has_euis(&planned.device)) {
            let holder = holders.insert(euis(device), format!("row {number}"));
            taken.extend(holder.map(|holder| BadRow {
                number: *number,
                field: bad("dev_eui", format!("{holder} has the same AppEUI and DevEUI")),
            }));
        }
        taken
    }
}

/// The fields whose texts differ.
fn changed(before: &Device, after: &Device) -> Vec<&'static str> {
    let nothing = LorawanDevice::default();
    let [before_lorawan, after_lorawan] =
        [before, after].map(|device| device.lorawan_device.as_ref().unwrap_or(&nothing));
    let names = FIELDS.iter().map(|field| field.name);
    names.filter(|name| get(before, before_lorawan, name) != get(after, after_lorawan, name)).collect()
}

/// Checks what the handler checks.
fn check(device: &Device) -> Result<(), BadField> {
    let constraints = device.lorawan_device.as_ref().map(|lorawan| lorawan.activation_constraints.as_str());
    let parts = DeviceParts {
        description: &device.description,
        latitude: device.latitude,
        longitude: device.longitude,
        altitude: device.altitude,
        activation_constraints: constraints.unwrap_or_default(),
        attributes: &device.attributes,
    };
    parts.check().map_err(|broken| bad("", broken.to_string()))
}

/// A running device keeps its EUIs and its address.
fn check_identity(before: &Device, after: &Device, advice: &str) -> Result<(), BadField> {
    let name = match (before.lorawan_device.as_ref(), after.lorawan_device.as_ref()) {
        (Some(before), Some(after)) if before.app_eui != after.app_eui => "app_eui",
        (Some(before), Some(after)) if before.dev_eui != after.dev_eui => "dev_eui",
        (Some(before), Some(after)) if address(before) != address(after) => "dev_addr",
        _ => return Ok(()),
    };
    Err(bad(name, format!("would change, and break the connection to a running device: {advice}")))
}

fn address(lorawan: &LorawanDevice) -> DevAddr {
    lorawan.dev_addr.unwrap_or_default()
}

fn euis(device: &Device) -> Euis {
    device.lorawan_device.as_ref().map(|lorawan| (lorawan.app_eui, lorawan.dev_eui)).unwrap_or_default()
}

fn bad(name: &'static str, reason: String) -> BadField {
    BadField { name, reason }
}

#[cfg(test)]
mod tests {
    use types::AppKey;

    use super::*;
    use crate::{read, write_csv};

    fn planned(text: &str, registered: Vec<Device>) -> Plan {
        let rows = read(text.as_bytes(), None, 10).unwrap();
        let app_id: AppId = "my-app".parse().unwrap();
        plan(rows, registered, (&app_id, AppEui::default()), Allowed::NoIdentity("ask first"))
    }

    fn device(dev_id: &str, last: u8) -> Device {
        let dev_eui = DevEui::new([0, 0, 0, 0, 0, 0, 0, last]);
        new_device("my-app".parse().unwrap(), dev_id.parse().unwrap(), AppEui::default(), dev_eui)
    }

    #[test]
    fn good_rows_are_planned_beside_bad_ones() {
        let text = "dev_id,dev_eui,description\n\
                    new,0000000000000003,\n\
                    dev-1,,changed\n\
                    dev-2,,\n\
                    no id,,\n\
                    other,0000000000000001,\n\
                    dev-2,0000000000000009,\n";
        let plan = planned(text, vec![device("dev-1", 1), device("dev-2", 2)]);
        let steps: Vec<_> = plan.planned.iter().map(|planned| (planned.number, planned.step)).collect();
        assert_eq!(steps, [(2, Step::Created), (3, Step::Updated), (4, Step::Unchanged)]);
        assert_eq!(plan.planned[1].changed, ["description"]);
        let bad: Vec<_> = plan.bad.iter().map(|bad| (bad.number, bad.field.name)).collect();
        assert_eq!(bad, [(5, "dev_id"), (6, "dev_eui"), (7, "dev_id")]);
        let renamed = planned("dev_id,dev_eui\ndev-1,0000000000000009\n", vec![device("dev-1", 1)]);
        assert!(renamed.bad[0].field.reason.ends_with("ask first"), "{:?}", renamed.bad);
    }

    #[test]
    fn several_devices_have_no_euis() {
        let text = "dev_id,description\ndev-1,changed\ndev-2,changed\nnew,\n";
        let plan = planned(text, vec![device("dev-1", 0), device("dev-2", 0), device("dev-3", 0)]);
        assert_eq!((plan.planned.len(), plan.bad), (3, Vec::new()));
        let mut file = Vec::new();
        write_csv(&mut file, [device("dev-1", 0), device("dev-2", 0)].iter(), false).unwrap();
        let rows = read(&file, None, 10).unwrap();
        let ids = (&"my-app".parse().unwrap(), AppEui::new([1; 8]));
        let plan = super::plan(rows, Vec::new(), ids, Allowed::All);
        assert_eq!((plan.planned.len(), plan.bad), (2, Vec::new()));
    }

    #[test]
    fn a_device_that_has_counted_frames_since_it_was_listed_is_not_set_back() {
        // As an export has it: the counters are those of the list.
        let counted = |f_cnt_up: u32| {
            let mut device = device("dev-1", 1);
            let lorawan = device.lorawan_device.as_mut().unwrap();
            (lorawan.f_cnt_up, lorawan.app_key) = (f_cnt_up, Some(AppKey::new([1; 16])));
            device
        };
        let text = "dev_id,f_cnt_up,description\ndev-1,7,changed\n";
        let renewed = planned(text, vec![counted(7)]).planned[0].renew(counted(500)).ok().unwrap();
        let lorawan = renewed.lorawan_device.unwrap();
        assert_eq!((renewed.description.as_str(), lorawan.f_cnt_up), ("changed", 500));
        assert!(lorawan.dev_addr.is_none() && lorawan.app_key.is_none(), "what is stored stays");
        let renewed = planned(text, vec![counted(8)]).planned[0].renew(counted(500)).ok().unwrap();
        assert_eq!(renewed.lorawan_device.unwrap().f_cnt_up, 7, "the file says so");
    }

    #[test]
    fn changes_that_a_running_device_may_not_survive_are_told_apart() {
        let text = format!("dev_id,f_cnt_up,app_key\ndev-1,7,\ndev-2,,{}\nnew,7,{0}\n", "01".repeat(16));
        let plan = planned(&text, vec![device("dev-1", 1), device("dev-2", 2)]);
        let told = plan.planned.iter().map(|planned| (planned.changes_keys(), planned.changes_frame_counters()));
        assert_eq!(told.collect::<Vec<_>>(), [(false, true), (true, false), (false, false)]);
    }

    #[test]
    fn a_file_has_so_many_devices_and_no_more() {
        let text = "dev_id\ndev-1\ndev-2\n";
        assert!(read(text.as_bytes(), None, 2).is_ok());
        let error = read(text.as_bytes(), None, 1).err().unwrap();
        assert_eq!(error.to_string(), "it has more than 1 devices: split it");
    }
}
