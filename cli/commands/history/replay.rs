//! `airlock history replay`: stored messages are sent again by the handler, which reports while it does.

mod sent;

use std::io::{IsTerminal, Write, stderr};

use anyhow::bail;
use api::rest::handler::SendAgain;
use client::history::SendReports;
use tokio::time::sleep;
use types::AppId;

use self::sent::Sent;
use super::{
    args::Replay,
    decode::{ATTEMPTS_MAX, RETRY_WAIT},
};
use crate::{network::Network, terminal::warn};

pub(super) async fn run(network: &Network, app_id: &AppId, replay: Replay) -> anyhow::Result<()> {
    let body = replay.send_again(network.clock.now())?;
    let is_dry_run = body.dry_run;
    let sent = send_all(network, app_id, body).await?;
    sent.print(&network.output, is_dry_run)?;
    sent.check()
}

/// Has the handler send all of these messages, and adds up its reports. A lost connection is made again where it was
/// lost.
async fn send_all(network: &Network, app_id: &AppId, mut body: SendAgain) -> anyhow::Result<Sent> {
    let credential = network.credential_for(app_id).await?;
    let announcement = network.announcement().await?;
    let shows = network.output.is_table() && stderr().is_terminal();
    let (mut sent, mut attempts) = (Sent::default(), 1);
    loop {
        let before = sent.examined();
        let ended = match SendReports::start(&announcement, app_id, &credential, &body).await {
            Ok(mut reports) => follow(&mut reports, &mut body, &mut sent, shows).await,
            // A handler that restarts may be there again soon.
            Err(error) if before > 0 => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        if shows {
            // With standard error closed, there is nobody to tell.
            _ = write!(stderr(), "\r\x1b[K");
        }
        let Some(reason) = ended else { return Ok(sent) };
        attempts = if sent.examined() > before { 1 } else { attempts + 1 };
        if attempts > ATTEMPTS_MAX {
            sent.print(&network.output, body.dry_run)?;
            let after = if body.after.is_empty() { "" } else { &format!(": go on with --after {}", body.after) };
            bail!("stopped after {} messages, because {reason}{after}", sent.examined());
        }
        warn(format_args!("trying again: {reason}"))?;
        sleep(RETRY_WAIT).await;
    }
}

/// Adds up reports until the last one, and notes where to go on. Returns why they ended before that.
async fn follow(reports: &mut SendReports, body: &mut SendAgain, sent: &mut Sent, shows: bool) -> Option<String> {
    while !sent.is_done() {
        match reports.next().await {
            Ok(Some(report)) if report.error.is_empty() => {
                if !report.next.is_empty() {
                    body.after.clone_from(&report.next);
                }
                sent.add(report);
            }
            Ok(Some(report)) => return Some(report.error),
            Ok(None) => return Some("the connection was lost".to_owned()),
            Err(error) => return Some(error.to_string()),
        }
        if shows {
            _ = write!(stderr(), "\r{} messages", sent.examined());
        }
    }
    None
}
