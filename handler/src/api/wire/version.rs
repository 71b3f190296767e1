//! Versions of functions on the wire.

use api::{handler::Application as ApplicationMessage, rest::handler as body, version as message};
use runtime::Sources;

use crate::{
    Error,
    registry::application::{
        Abandonment, FunctionsVersion, ListedVersion, SentApplication, StoredVersion, Tally, VersionLabel, VersionUse,
    },
};

pub(crate) fn label(label: body::VersionLabel) -> Result<VersionLabel, Error> {
    VersionLabel::new(label.note, label.link)
}

/// The functions of a new version, and its label.
pub(crate) fn new_version(app_id: &str, version: body::NewVersion) -> Result<(SentApplication, VersionLabel), Error> {
    let body::NewVersion { payload_format, functions, note, link } = version;
    let body::VersionFunctions { decoder, converter, validator, encoder } = functions;
    let application = SentApplication {
        app_id: app_id.parse()?,
        payload_format,
        sources: Sources { decoder, converter, validator, encoder, ..Sources::default() },
        register_on_join_access_key: None,
    };
    Ok((application, VersionLabel::new(note, link)?))
}

/// The same from its message.
pub(crate) fn new_version_of(version: message::NewVersion) -> Result<(SentApplication, VersionLabel), Error> {
    let message::NewVersion { functions, note, link } = version;
    let functions = functions.ok_or_else(|| Error::invalid("Version", "functions are missing"))?;
    let application = body::HandlerApplication::from(functions).try_into()?;
    Ok((application, VersionLabel::new(note, link)?))
}

/// The versions of an application, the newest first.
pub(crate) fn list_body(versions: Vec<ListedVersion>) -> body::VersionList {
    let versions = versions.into_iter().map(|ListedVersion { version, used }| version_body(version, used));
    body::VersionList { versions: versions.collect() }
}

/// The same as a message.
pub(crate) fn list_message(versions: Vec<ListedVersion>) -> message::VersionList {
    let shown = |version: body::Version| {
        let format = version.payload_format.clone();
        let functions = ApplicationMessage { payload_format: format, ..ApplicationMessage::default() };
        version_message(version, functions)
    };
    message::VersionList { versions: list_body(versions).versions.into_iter().map(shown).collect() }
}

/// A version with its functions.
pub(crate) fn stored_body(stored: StoredVersion) -> body::Version {
    let StoredVersion { version, application, used } = stored;
    let (_, Sources { decoder, converter, validator, encoder, .. }) = application.into_parts();
    let functions = body::VersionFunctions { decoder, converter, validator, encoder };
    body::Version { functions: Some(functions), ..version_body(version, used) }
}

/// The same as a message.
pub(crate) fn stored_message(stored: StoredVersion) -> message::Version {
    let StoredVersion { version, application, used } = stored;
    version_message(version_body(version, used), body::HandlerApplication::from(application).into())
}

/// The results of a version for its uplinks.
pub(crate) fn results_body(tally: Tally) -> body::VersionResults {
    body::VersionResults { uplinks: tally.uplinks, failed: tally.failed, mean_fuel: tally.mean_fuel() }
}

/// The same as a message.
pub(crate) fn results_message(results: body::VersionResults) -> message::Results {
    message::Results { uplinks: results.uplinks, failed: results.failed, mean_fuel: results.mean_fuel }
}

/// A number on the wire; zero stands for the version that is live.
pub(crate) fn number(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number > 0)
}

fn version_body(version: FunctionsVersion, used: VersionUse) -> body::Version {
    let FunctionsVersion { number, hash, payload_format, origin, abandoned, .. } = version;
    body::Version {
        number,
        hash: hex::encode(hash.as_bytes()),
        time: origin.time,
        changed_by: origin.changed_by.unwrap_or_default(),
        note: origin.label.note().to_owned(),
        link: origin.label.link().to_owned(),
        live: used == VersionUse::Live,
        share_percent: match used {
            VersionUse::Share(share) => Some(share.percent()),
            VersionUse::Live | VersionUse::Older => None,
        },
        restores: origin.restores.unwrap_or_default(),
        payload_format,
        dialect: origin.dialect.unwrap_or_default(),
        limits: origin.limits,
        abandoned: abandoned.map(abandonment_body),
        functions: None,
    }
}

fn abandonment_body(Abandonment { time, margin, results, live, live_results }: Abandonment) -> body::Abandonment {
    body::Abandonment {
        time,
        margin_percent: margin.percent(),
        results: results_body(results),
        live_version: live.unwrap_or_default(),
        live_results: results_body(live_results),
    }
}

fn abandonment_message(abandonment: body::Abandonment) -> message::Abandonment {
    message::Abandonment {
        time: abandonment.time.as_nanos(),
        margin_percent: abandonment.margin_percent,
        results: Some(results_message(abandonment.results)),
        live_version: abandonment.live_version,
        live_results: Some(results_message(abandonment.live_results)),
    }
}

fn version_message(version: body::Version, functions: ApplicationMessage) -> message::Version {
    message::Version {
        number: version.number,
        hash: version.hash,
        time: version.time.map(types::Timestamp::as_nanos).unwrap_or_default(),
        changed_by: version.changed_by,
        note: version.note,
        link: version.link,
        live: version.live,
        restores: version.restores,
        functions: Some(functions),
        share_percent: version.share_percent.unwrap_or_default(),
        dialect: version.dialect,
        limits: version.limits,
        abandoned: version.abandoned.map(abandonment_message),
    }
}
