//! `airlock history decode` and `verify`: stored uplinks are decoded again by the handler, which reports while it does.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use anyhow::{Context, bail};
use api::rest::handler::{DecodeAgain, HandlerApplication};
use client::history::DecodeReports;
use tokio::time::sleep;
use types::AppId;
use workbench::PendingFile;

use super::{
    args::{Decode, Selection},
    totals::Totals,
};
use crate::{
    commands::applications::{args::FunctionOrFormat, functions::set_function},
    network::Network,
    script,
    terminal::warn,
};

/// How often a lost connection is made again without any report in between, and how long between.
pub(super) const ATTEMPTS_MAX: usize = 5;
pub(super) const RETRY_WAIT: Duration = Duration::from_secs(3);

pub(super) async fn run(network: &Network, app_id: &AppId, decode: Decode) -> anyhow::Result<()> {
    let Decode { selection, functions, version, write, publish, rate, after, html } = decode;
    let functions = match functions {
        Some(file) => {
            let decoder = script::read(&file)?;
            let mut application = network.handler_for(app_id).await?.get_application(app_id).await?;
            set_function(&mut application, FunctionOrFormat::Decoder, decoder);
            Some(HandlerApplication::from(application))
        }
        None => None,
    };
    let body = DecodeAgain {
        functions,
        version: version.unwrap_or_default(),
        write,
        publish,
        publish_per_s: rate.unwrap_or_default(),
        after: after.unwrap_or_default(),
        ..selection.decode_again(network.clock.now())
    };
    let totals = decode_all(network, app_id, body).await?;
    if let Some(path) = html {
        let mut file = PendingFile::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        file.write_all(totals.html(app_id).as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        file.finish().with_context(|| format!("cannot write {}", path.display()))?;
    }
    totals.print(&network.output)?;
    totals.check()
}

pub(super) async fn verify(network: &Network, app_id: &AppId, selection: Selection, sample: u32) -> anyhow::Result<()> {
    let body = DecodeAgain { verify: true, per_device: sample, ..selection.decode_again(network.clock.now()) };
    let totals = decode_all(network, app_id, body).await?;
    totals.print(&network.output)?;
    totals.check_repeated()
}

/// Has the handler decode all of these uplinks, and adds up its reports. A lost connection is made again where it was
/// lost.
pub(crate) async fn decode_all(network: &Network, app_id: &AppId, mut body: DecodeAgain) -> anyhow::Result<Totals> {
    let credential = network.credential_for(app_id).await?;
    let announcement = network.announcement().await?;
    let shows = network.output.is_table() && stderr().is_terminal();
    let (mut totals, mut attempts) = (Totals::default(), 1);
    loop {
        let before = totals.examined();
        let ended = match DecodeReports::start(&announcement, app_id, &credential, &body).await {
            Ok(mut reports) => follow(&mut reports, &mut body, &mut totals, shows).await,
            // A handler that restarts may be there again soon.
            Err(error) if before > 0 => Some(Ended::temporarily(&error)),
            Err(error) => return Err(error.into()),
        };
        if shows {
            // With standard error closed, there is nobody to tell.
            _ = write!(stderr(), "\r\x1b[K");
        }
        let Some(Ended { reason, is_temporary }) = ended else { return Ok(totals) };
        attempts = if totals.examined() > before { 1 } else { attempts + 1 };
        // What is limited by device counts from the start, so it cannot go on.
        if !is_temporary || body.per_device > 0 || attempts > ATTEMPTS_MAX {
            let after = if body.after.is_empty() { "" } else { &format!(": go on with --after {}", body.after) };
            bail!("stopped after {} uplinks, because {reason}{after}", totals.examined());
        }
        warn(format_args!("trying again: {reason}"))?;
        sleep(RETRY_WAIT).await;
    }
}

/// Why reports ended before the last one.
struct Ended {
    reason: String,
    /// Whether it may go on if the handler is asked again.
    is_temporary: bool,
}

impl Ended {
    fn temporarily(reason: &impl ToString) -> Self {
        Self { reason: reason.to_string(), is_temporary: true }
    }
}

/// Adds up reports until the last one, and notes where to go on. Returns why they ended before that.
async fn follow(
    reports: &mut DecodeReports,
    body: &mut DecodeAgain,
    totals: &mut Totals,
    shows: bool,
) -> Option<Ended> {
    while !totals.is_done() {
        match reports.next().await {
            Ok(Some(report)) if report.error.is_empty() => {
                body.after.clone_from(&report.next);
                totals.add(report);
            }
            Ok(Some(report)) => return Some(Ended { reason: report.error, is_temporary: report.temporary }),
            Ok(None) => return Some(Ended::temporarily(&"the connection was lost")),
            Err(error) => return Some(Ended::temporarily(&error)),
        }
        if shows {
            _ = write!(stderr(), "\r{} uplinks", totals.examined());
        }
    }
    None
}
