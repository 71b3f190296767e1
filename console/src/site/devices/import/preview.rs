//! The page that shows what a file would do.

use api::rest::handler::LorawanDevice;
use askama::Template;
use device_file::{BadRow, Plan, Planned, Step};

use super::file::ImportFile;
use crate::{
    Result,
    site::{
        devices::steps::Shown,
        page::{Frame, Page, short},
        viewer::InApplication,
    },
};

#[derive(Template)]
#[template(path = "device_import_preview.html")]
pub(super) struct Preview {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    note: Note,
    /// The file, which the form brings back.
    sealed: String,
    created: Shown<NewDevice>,
    updated: Shown<ChangedDevice>,
    bad: Shown<BadRow>,
    counts: Counts,
}

/// The reason for which somebody sees a preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    New,
    /// It was sent when the login had expired or a service was away.
    Draft,
    /// The form was sent before.
    Repeated,
    /// Somebody else has changed devices since the preview.
    Changed,
}

struct Counts {
    created: usize,
    updated: usize,
    unchanged: usize,
    bad: usize,
    /// Registered devices whose keys change, and those whose frame counters do.
    keys: usize,
    frame_counters: usize,
}

struct NewDevice {
    number: usize,
    dev_id: String,
    dev_eui: String,
    activation: &'static str,
    description: String,
}

struct ChangedDevice {
    number: usize,
    dev_id: String,
    fields: String,
}

impl Preview {
    pub(super) fn page(request: &InApplication, file: &ImportFile, plan: &Plan, note: Note) -> Result<Page<Self>> {
        let with = |step: Step| plan.planned.iter().filter(move |planned| planned.step == step);
        Ok(Page::new(Self {
            frame: request.frame.clone(),
            app_id: request.app_id().to_string(),
            tab: "devices",
            note,
            sealed: file.seal(request, plan)?,
            created: with(Step::Created).map(NewDevice::of).collect(),
            updated: with(Step::Updated).map(ChangedDevice::of).collect(),
            bad: plan.bad.iter().cloned().collect(),
            counts: Counts {
                created: plan.count(Step::Created),
                updated: plan.count(Step::Updated),
                unchanged: plan.count(Step::Unchanged),
                bad: plan.bad.len(),
                keys: plan.planned.iter().filter(|planned| planned.changes_keys()).count(),
                frame_counters: plan.planned.iter().filter(|planned| planned.changes_frame_counters()).count(),
            },
        }))
    }

    /// Number of devices that the form would set.
    fn set(&self) -> usize {
        self.counts.created + self.counts.updated
    }

    fn is_draft(&self) -> bool {
        self.note == Note::Draft
    }

    fn is_repeated(&self) -> bool {
        self.note == Note::Repeated
    }

    fn is_changed(&self) -> bool {
        self.note == Note::Changed
    }
}

impl NewDevice {
    fn of(planned: &Planned) -> Self {
        let nothing = LorawanDevice::default();
        let lorawan = planned.device.lorawan_device.as_ref().unwrap_or(&nothing);
        let is_template = lorawan.dev_eui.is_zero();
        Self {
            number: planned.number,
            dev_id: planned.device.dev_id.clone(),
            dev_eui: if is_template { String::new() } else { lorawan.dev_eui.to_hex() },
            activation: activation(lorawan),
            description: short(&planned.device.description),
        }
    }
}

impl ChangedDevice {
    fn of(planned: &Planned) -> Self {
        Self { number: planned.number, dev_id: planned.device.dev_id.clone(), fields: planned.changed.join(", ") }
    }
}

/// A device without keys neither joins nor has a session.
fn activation(lorawan: &LorawanDevice) -> &'static str {
    let joins = lorawan.app_key.as_ref().is_some_and(|key| !key.is_zero());
    let has_session = lorawan.nwk_s_key.as_ref().is_some_and(|key| !key.is_zero());
    match (joins, has_session) {
        (true, _) => "OTAA",
        (false, true) => "ABP",
        (false, false) => "no key",
    }
}
