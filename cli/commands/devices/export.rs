//! `airlock devices export`: the devices of an application as a file that can be imported.

use std::{io, path::PathBuf};

use anyhow::Context;
use api::rest::handler::Device;
use clap::Args;
use client::handler::HandlerClient;
use device_file::{remove_empty_keys, remove_keys, write_csv, write_json};
use server::private_file::write_private;
use types::AppId;

use super::{all, file::FileFormat};
use crate::command_context::CommandContext;

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// File, which only you can read; `-` is standard output, which is the default
    file: Option<PathBuf>,
    /// Format
    #[arg(long, value_enum, default_value_t = FileFormat::Csv)]
    format: FileFormat,
    /// Include the keys of the devices
    #[arg(long)]
    with_keys: bool,
}

pub(super) async fn run(
    context: &CommandContext,
    handler: &HandlerClient,
    app_id: &AppId,
    export: Export,
) -> anyhow::Result<()> {
    let mut devices = all(handler, app_id).await?;
    for lorawan in devices.iter_mut().filter_map(|device| device.lorawan_device.as_mut()) {
        if !export.with_keys {
            remove_keys(lorawan);
        }
        remove_empty_keys(lorawan);
    }
    let Some(file) = export.file.as_ref().filter(|file| file.as_os_str() != "-") else {
        return write(&mut io::stdout().lock(), &devices, &export).context("cannot write to standard output");
    };
    let mut bytes = Vec::new();
    write(&mut bytes, &devices, &export)?;
    write_private(file, &bytes).with_context(|| format!("cannot write {}", file.display()))?;
    context.output.message(format_args!("Wrote {} devices to {}", devices.len(), file.display()))
}

fn write(to: &mut dyn io::Write, devices: &[Device], export: &Export) -> anyhow::Result<()> {
    match export.format {
        FileFormat::Csv => write_csv(to, devices.iter(), export.with_keys)?,
        FileFormat::Json => write_json(to, devices.iter())?,
    }
    Ok(())
}
