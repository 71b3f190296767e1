//! Applications with real codecs, and stored uplinks of theirs that nothing has decoded yet.

use std::{path::Path, sync::Arc};

use history::{Environment, History, Kind, NewRecord, Outcome, Settings};
use runtime::Call;
use serde_json::{Value, json};
use server::system::{OsRandom, SystemClock};
use types::{AppId, Clock, DevId};
use workbench::Codec;

use crate::records;

/// Number of uplinks that wait for the disk together.
const GROUP: usize = 500;

pub(crate) struct Source {
    pub(crate) codec: String,
    pub(crate) functions: Value,
    messages: Vec<Call>,
}

/// This many codecs of the corpus, evenly spread.
pub(crate) fn sources(count: usize) -> Vec<Source> {
    let all: Vec<_> = records::read().into_iter().filter_map(source).collect();
    let step = (all.len() / count).max(1);
    all.into_iter().step_by(step).take(count).collect()
}

fn source(codec: Codec) -> Option<Source> {
    let messages: Vec<_> = records::uplinks(&codec).take(8).collect();
    let functions = json!({ "payload_format": codec.dialect?.name(), "decoder": codec.script });
    (!messages.is_empty()).then_some(Source { codec: codec.id, functions, messages })
}

/// Opens the history of a server beside it.
pub(crate) fn open(dir: &Path) -> Arc<History> {
    let settings = Settings {
        bytes_max: 1 << 40,
        application_bytes_max: Some(1 << 40),
        wait_ms_max: 60_000,
        ..Settings::default()
    };
    let environment =
        Environment { clock: Arc::new(SystemClock), random: &OsRandom, owner_of: Arc::new(ToString::to_string) };
    History::open(dir, settings, environment).unwrap()
}

/// Stores uplinks of this many devices, in turn.
pub(crate) async fn fill(history: &History, app_id: &AppId, source: &Source, uplinks: usize, devices: usize) {
    let devices: Vec<DevId> = (0..devices).map(|number| format!("dev-{number}").parse().unwrap()).collect();
    let received = SystemClock.now();
    for first in (0..uplinks).step_by(GROUP) {
        let group = first..uplinks.min(first + GROUP);
        let pending: Vec<_> = group
            .map(|number| {
                let message = &source.messages[number % source.messages.len()];
                history.append(&NewRecord {
                    port: message.port,
                    counter: (number / devices.len()) as u32,
                    payload: &message.payload,
                    outcome: Outcome::NotConverted,
                    ..NewRecord::new(app_id, &devices[number % devices.len()], &Kind::Uplink, received)
                })
            })
            .collect();
        for kept in pending {
            let kept = kept.await;
            assert!(kept.is_ok(), "{kept:?}");
        }
        if first / GROUP % 32 == 31 {
            history.maintain().await.unwrap();
        }
    }
    history.maintain().await.unwrap();
}
