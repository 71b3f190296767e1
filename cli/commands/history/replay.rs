//! `airlock history replay`: stored messages are sent again by the handler, which reports while it does.

mod sent;

use api::{discovery::Announcement, rest::handler::SendAgain};
use client::history::SendReports;
use types::{AppId, Credential};

use self::sent::Sent;
use super::{
    args::Replay,
    work::{Sum, Work},
};
use crate::command_context::CommandContext;

pub(super) async fn run(context: &CommandContext, app_id: &AppId, replay: Replay) -> anyhow::Result<()> {
    let body = replay.send_again(context.clock.now())?;
    let work = Work { context, app_id, noun: "messages", after: body.after.clone(), is_resumable: true };
    let start = async |announcement: &Announcement, credential: &Credential, after: &str| {
        let body = SendAgain { after: after.to_owned(), ..body.clone() };
        SendReports::start(announcement, app_id, credential, &body).await
    };
    let mut sent = Sent::default();
    let done = work.finish(&mut sent, start).await;
    if done.is_ok() || sent.examined() > 0 {
        sent.print(&context.output, body.dry_run)?;
    }
    done?;
    sent.check()
}
