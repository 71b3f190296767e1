//! The versions of an application's payload functions: listed, compared, restored.

use api::{
    handler::Application,
    version::{Version, VersionLabel},
};
use askama::Template;
use axum::response::Redirect;

use super::{
    candidate::{End, rounded},
    form::format_name,
};
use crate::site::{
    failure::Failure,
    page::{Frame, Page, Time, shown, shown_lines},
    viewer::InApplication,
};
use crate::{Error, Result};

/// The numbers of rows between which a source is shown; more are scrolled.
const ROWS_MIN: usize = 3;
const ROWS_MAX: usize = 24;

#[derive(Template)]
#[template(path = "versions.html")]
pub(in crate::site) struct List {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    versions: Vec<Version>,
}

#[derive(Template)]
#[template(path = "version.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    version: Version,
    functions: Application,
    /// The changes that restoring it would make.
    diff: String,
    /// Set if the handler has abandoned the version.
    abandoned: Option<End>,
}

impl List {
    fn time(&self, version: &Version) -> Option<Time> {
        time(version)
    }

    fn share(&self, version: &Version) -> Option<f64> {
        share(version)
    }
}

impl Show {
    fn time(&self) -> Option<Time> {
        time(&self.version)
    }

    fn share(&self) -> Option<f64> {
        share(&self.version)
    }

    fn format(&self) -> &str {
        format_name(&self.functions.payload_format)
    }

    /// Name, source and rows of each function.
    fn sources(&self) -> Vec<(&'static str, &str, usize)> {
        let Application { decoder, converter, validator, encoder, .. } = &self.functions;
        let all = [("Decoder", decoder), ("Converter", converter), ("Validator", validator), ("Encoder", encoder)];
        let rows = |source: &str| source.lines().count().clamp(ROWS_MIN, ROWS_MAX);
        let all = all.into_iter().filter(|(_, source)| !source.is_empty());
        all.map(|(name, source)| (name, source.as_str(), rows(source))).collect()
    }
}

pub(in crate::site) async fn list(request: InApplication) -> Result<Page<List>, Failure> {
    let mut versions = request.handler().await?.list_versions(request.app_id()).await?;
    for version in &mut versions {
        version.changed_by = request.name(&version.changed_by);
        version.note = shown(&version.note);
    }
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Ok(Page::new(List { frame, app_id, tab: "functions", versions }))
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Show>, Failure> {
    let (handler, number) = (request.handler().await?, number(&request)?);
    let found = handler.get_version(request.app_id(), number).await;
    let mut version = found.map_err(|error| Error::hiding("version", error))?;
    let diff = match version.live {
        true => String::new(),
        false => shown_lines(&handler.compare_versions(request.app_id(), 0, number).await?),
    };
    let abandoned = End::of(&version);
    version.changed_by = request.name(&version.changed_by);
    version.note = shown(&version.note);
    let functions = version.functions.take().unwrap_or_default();
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Ok(Page::new(Show { frame, app_id, tab: "functions", version, functions, diff, abandoned }))
}

/// Makes the functions of a version live again.
pub(in crate::site) async fn restore(request: InApplication) -> Result<Redirect, Failure> {
    let label = VersionLabel {
        app_id: request.app_id().to_string(),
        number: number(&request)?,
        note: String::new(),
        link: String::new(),
    };
    request.handler().await?.restore_version(label).await.map_err(|error| Error::hiding("version", error))?;
    Ok(Redirect::to(&format!("{}/functions?done=restored", request.path())))
}

fn number(request: &InApplication) -> Result<u32> {
    let number = request.parameter("number").parse().ok().filter(|number| *number > 0);
    number.ok_or(Error::NotFound("version"))
}

/// The share of the devices that have a version which is tried, in percent.
fn share(version: &Version) -> Option<f64> {
    (version.share_percent > 0.0).then(|| rounded(version.share_percent))
}

fn time(version: &Version) -> Option<Time> {
    (version.time > 0).then_some(Time(version.time))
}
