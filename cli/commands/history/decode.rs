//! `airlock history decode` and `verify`: stored uplinks are decoded again by the handler, which reports while it does.

use std::{io::Write, path::Path};

use anyhow::Context;
use api::{
    discovery::Announcement,
    rest::handler::{DecodeAgain, HandlerApplication},
};
use client::history::DecodeReports;
use types::{AppId, Credential};
use workbench::PendingFile;

use super::{
    args::{Decode, Selection},
    totals::Totals,
    work::{Sum, Work},
};
use crate::{
    command_context::CommandContext,
    commands::applications::{args::FunctionOrFormat, functions::set_function},
    values::script,
};

pub(super) async fn run(context: &CommandContext, app_id: &AppId, decode: Decode) -> anyhow::Result<()> {
    let Decode { selection, functions, version, recorded_limits, write, publish, rate, after, html } = decode;
    let functions = match functions {
        Some(file) => {
            let decoder = script::read(&file)?;
            let mut application = context.handler_for(app_id).await?.get_application(app_id).await?;
            set_function(&mut application, FunctionOrFormat::Decoder, decoder);
            Some(HandlerApplication::from(application))
        }
        None => None,
    };
    let body = DecodeAgain {
        functions,
        version: version.unwrap_or_default(),
        recorded_limits,
        write,
        publish,
        publish_per_s: rate.unwrap_or_default(),
        after: after.unwrap_or_default(),
        ..selection.decode_again(context.clock.now())
    };
    decode_all(context, app_id, body, html.as_deref()).await?.check()
}

pub(super) async fn verify(
    context: &CommandContext,
    app_id: &AppId,
    selection: Selection,
    sample: u32,
) -> anyhow::Result<()> {
    let body = DecodeAgain { verify: true, per_device: sample, ..selection.decode_again(context.clock.now()) };
    decode_all(context, app_id, body, None).await?.check_repeated()
}

/// Has the handler decode all of these uplinks, and adds up its reports. The totals are printed, and written to a page
/// if one is wanted, also where it stops too early.
pub(crate) async fn decode_all(
    context: &CommandContext,
    app_id: &AppId,
    body: DecodeAgain,
    html: Option<&Path>,
) -> anyhow::Result<Totals> {
    // What is limited by device counts from the start, so it cannot go on.
    let is_resumable = body.per_device == 0;
    let work = Work { context, app_id, noun: "uplinks", after: body.after.clone(), is_resumable };
    let start = async |announcement: &Announcement, credential: &Credential, after: &str| {
        let body = DecodeAgain { after: after.to_owned(), ..body.clone() };
        DecodeReports::start(announcement, app_id, credential, &body).await
    };
    // Before the work, which may take long and cannot be taken back.
    let create = |path: &Path| PendingFile::create(path).with_context(|| format!("cannot create {}", path.display()));
    let page = html.map(create).transpose()?;
    let mut totals = Totals::default();
    let done = work.finish(&mut totals, start).await;
    if done.is_err() && totals.examined() == 0 {
        return done.map(|()| totals);
    }
    let printed = totals.print(&context.output);
    let written = page.map_or(Ok(()), |page| write_page(page, &totals.html(app_id)?));
    done.and(written).and(printed).map(|()| totals)
}

fn write_page(mut file: PendingFile, page: &str) -> anyhow::Result<()> {
    file.write_all(page.as_bytes()).and_then(|()| file.finish()).context("cannot write the page of --html")
}
