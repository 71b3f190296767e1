//! Stored form of applications: two JSON records, the summary with its access key sealed, and the function sources.

use std::borrow::Cow;

use runtime::Sources;
use serde::{Deserialize, Serialize};
use server::seal::Sealed;
use types::AppId;

use super::model::{Application, ApplicationSummary};
use crate::{Error, registry::sealer::Sealer};

/// A summary in the store. Older records have no sealed key, but a plain one in the summary.
#[derive(Serialize, Deserialize)]
struct SummaryRecord<'a> {
    #[serde(flatten)]
    summary: Cow<'a, ApplicationSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Sealed>,
}

/// The sources in the store. The payload format, which is in the summary, decides their dialect.
#[derive(Serialize, Deserialize)]
struct SourcesRecord<'a> {
    decoder: Cow<'a, str>,
    converter: Cow<'a, str>,
    validator: Cow<'a, str>,
    encoder: Cow<'a, str>,
}

pub(super) fn write_summary(sealer: &Sealer, summary: &ApplicationSummary) -> Result<Vec<u8>, Error> {
    let mut summary = summary.clone();
    let key = summary.register_on_join_access_key.take();
    let key = key.map(|key| sealer.seal(&aad(&summary.app_id), &key)).transpose()?;
    Ok(serde_json::to_vec(&SummaryRecord { summary: Cow::Owned(summary), key })?)
}

pub(super) fn read_summary(sealer: &Sealer, record: &[u8]) -> Result<ApplicationSummary, Error> {
    let SummaryRecord { summary, key } = serde_json::from_slice(record)?;
    let mut summary = summary.into_owned();
    if let Some(key) = key {
        let key = sealer.open("key for registering on join", &aad(&summary.app_id), &key)?;
        summary.register_on_join_access_key = Some(key);
    }
    Ok(summary)
}

pub(super) fn write_sources(application: &Application) -> Result<Vec<u8>, Error> {
    let Sources { decoder, converter, validator, encoder, .. } = application.sources();
    Ok(serde_json::to_vec(&SourcesRecord {
        decoder: decoder.into(),
        converter: converter.into(),
        validator: validator.into(),
        encoder: encoder.into(),
    })?)
}

/// The sources of a record, without their dialect.
pub(super) fn read_sources(record: &[u8]) -> Result<Sources, Error> {
    let SourcesRecord { decoder, converter, validator, encoder } = serde_json::from_slice(record)?;
    Ok(Sources {
        decoder: decoder.into_owned(),
        converter: converter.into_owned(),
        validator: validator.into_owned(),
        encoder: encoder.into_owned(),
        ..Sources::default()
    })
}

fn aad(app_id: &AppId) -> String {
    format!("application {app_id}")
}
