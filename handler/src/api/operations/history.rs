//! Operations on the history of an application's messages.

use std::{future::ready, sync::Arc};

use ::history::{ChartQuery, ExportPart, Format, Kind, Outcome, Page, Query, Record, RecordId};
use api::rest::handler::{Chart, DecodeReport, Delivery, SendReport};
use futures::{Stream, TryStreamExt};
use server::{
    auth::{Caller, Purpose},
    serve::PartTurns,
};
use types::{AppId, ApplicationRight, Claims};

use super::{Operations, actor};
use crate::{
    Error,
    api::wire::{
        decode_again::{SentDecodeAgain, SentFunctions},
        history::WholeRecord,
        send_again::SentSendAgain,
    },
    output::{PublishedMessage, Receivers},
    payload::Payload,
    registry::application::Conversion,
    uplink::{
        recorded::{
            chart::chart,
            decode_again::{DECODE_BYTES_MAX, DecodeAgain, Functions, Parts, decode_again},
            send_again::{self, SendAgain, message_again, send_again},
        },
        stored::{file_names, payload},
    },
};

/// The kind of outputs that belong to applications. Others are the operator's.
const WEBHOOK: &str = "webhook";

impl Operations {
    /// Lists records, the newest first.
    pub(crate) async fn list_records(&self, caller: Caller, query: Query) -> Result<Page, Error> {
        let usage = caller.usage.clone();
        self.allow_history(caller, &query.app_id).await?;
        let mut page = self.history.query(query).await?;
        page.skipped.retain(|file| !file.is_foreign);
        usage.add_entries(page.records.len());
        Ok(page)
    }

    /// The numeric fields of a device over time.
    pub(crate) async fn chart(&self, caller: Caller, query: ChartQuery) -> Result<Chart, Error> {
        let usage = caller.usage.clone();
        self.allow_history(caller, &query.app_id).await?;
        let _turn = usage.turn_for_list().await;
        chart(&self.history, query, &usage).await
    }

    /// All records that are wanted, as a file in parts.
    pub(crate) async fn export_records(
        &self,
        caller: Caller,
        query: Query,
        format: Format,
    ) -> Result<impl Stream<Item = Result<ExportPart, ::history::Error>> + Send + use<>, Error> {
        self.allow_history(caller, &query.app_id).await?;
        Ok(self.history.export(query, format).try_filter_map(|part| ready(Ok(without_foreign(part)))))
    }

    /// Gets a record, with the limits of its functions as far as they are known, and its corrections.
    pub(crate) async fn get_record(&self, caller: Caller, app_id: &AppId, id: RecordId) -> Result<WholeRecord, Error> {
        self.allow_history(caller, app_id).await?;
        let record = self.record(app_id, id).await?;
        let now = self.payloads.limits(app_id);
        let limits = match record.limits {
            Some(hash) if hash == now.prefix() => Some(now.by_name()),
            Some(hash) => self.applications.past_limits(hash).await?,
            None => None,
        };
        let corrections = self.history.corrections(&record).await?;
        Ok(WholeRecord { record, limits: limits.unwrap_or_default(), corrections })
    }

    /// Says what became of a stored message at each receiver. Webhooks are left out for callers who may not see them, and
    /// corrections, which may not have been published, have none.
    pub(crate) async fn list_deliveries(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: RecordId,
    ) -> Result<Vec<Delivery>, Error> {
        let usage = caller.usage.clone();
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::MessagesUpRead], Purpose::Read).await?;
        self.applications.check_registered(app_id).await?;
        let record = self.record(app_id, id).await?;
        if record.corrects.is_some() || record.outcome == Outcome::Invalid {
            return Ok(Vec::new());
        }
        let _turn = usage.turn_for_list().await;
        let again = message_again(&self.uplinks, record.clone()).await?;
        let message = PublishedMessage::of(&record, again, usage.clone());
        let mut deliveries = self.uplinks.output.deliveries(&message).await?;
        deliveries.retain(|delivery| delivery.kind != WEBHOOK || claims.allows(app_id, ApplicationRight::Settings));
        deliveries.iter_mut().filter(|delivery| delivery.kind != WEBHOOK).for_each(hide_from_owner);
        Ok(deliveries)
    }

    /// Gets the input of the functions for a stored uplink, as it was.
    pub(super) async fn recorded_payload(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: RecordId,
    ) -> Result<Payload, Error> {
        self.allow_history(caller, app_id).await?;
        let record = self.record(app_id, id).await?;
        match &record.kind {
            Kind::Uplink => Ok(payload(&record)),
            Kind::Event(name) => Err(Error::invalid("Record", format_args!("it is the event {name}, and no uplink"))),
        }
    }

    /// Runs functions on stored uplinks again; see [`decode_again`].
    pub(crate) async fn decode_again(
        &self,
        caller: Caller,
        sent: SentDecodeAgain,
        mut turns: PartTurns,
    ) -> Result<impl Stream<Item = Result<DecodeReport, Error>> + Send + use<>, Error> {
        let usage = caller.usage.clone();
        let claims = self.allow_decoding(caller, &sent).await?;
        let is_change = sent.changes();
        turns.charge_memory(DECODE_BYTES_MAX)?;
        let SentDecodeAgain { has_recorded_limits, compares_live, per_device, is_written, published_per_s, .. } = sent;
        let SentDecodeAgain { query, functions, time_max, .. } = sent;
        let app_id = query.app_id.clone();
        if is_written && !self.history.keeps(&app_id) {
            return Err(Error::invalid("Write", "history keeps nothing of this application: set `history.bytes_max`"));
        }
        let functions = match functions {
            SentFunctions::Recorded => Functions::Recorded,
            SentFunctions::Sent(application) => Functions::Given(Arc::new(application.into_application())),
            SentFunctions::Version(number) => {
                let stored = self.applications.version(&app_id, number).await?;
                Functions::Given(Arc::new(stored.application.with_version(Some(stored.version.number))))
            }
        };
        if let Functions::Given(application) = &functions {
            if application.summary().conversion() == Conversion::None {
                let reason = "none run without a payload format: set `payload_format`, such as `custom`";
                return Err(Error::invalid("Functions", reason));
            }
            self.payloads.check(application, &usage).await?;
        }
        let compared = if compares_live { Some(Arc::new(self.applications.get(&app_id).await?)) } else { None };
        let again =
            DecodeAgain { query, functions, has_recorded_limits, compared, per_device, published_per_s, time_max };
        // It gives the next revision to what it finds.
        let running = if is_written { Some(self.corrections.begin("a correction", &app_id).await?) } else { None };
        let (uplinks, history) = (self.uplinks.clone(), self.history.clone());
        let reports = decode_again(Parts { uplinks, history, running, usage, memory: turns }, &again);
        if is_change {
            self.audit.note("history corrected", &actor(&claims), &app_id);
        }
        Ok(reports)
    }

    /// Sends stored messages again; see [`send_again`].
    pub(crate) async fn send_again(
        &self,
        caller: Caller,
        sent: SentSendAgain,
    ) -> Result<impl Stream<Item = Result<SendReport, Error>> + Send + use<>, Error> {
        let SentSendAgain { mut query, id, to, per_s, is_dry_run } = sent;
        let purpose = if is_dry_run { Purpose::Read } else { Purpose::Change };
        self.allow_history(caller.clone(), &query.app_id).await?;
        let claims = self.access.allow(caller, &query.app_id, &[ApplicationRight::MessagesUpWrite], purpose).await?;
        self.check_receivers(&query.app_id, &to).await?;
        // What comes meanwhile reaches them anyway.
        query.until = query.until.or_else(|| Some(self.clock.now()));
        let is_single = id.is_some();
        if let Some(id) = id {
            let record = self.record(&query.app_id, id).await?;
            query = Query::only(query.app_id, record.corrects.unwrap_or(id));
        }
        // Twice the rate could push live messages out of queues. A single message does not matter.
        let is_alone = is_dry_run || is_single;
        let running = if is_alone { None } else { Some(self.replays.begin("a replay", &query.app_id).await?) };
        if !is_dry_run {
            self.audit.note("history sent again", &actor(&claims), &query.app_id);
        }
        let parts = send_again::Parts { uplinks: self.uplinks.clone(), history: self.history.clone(), running };
        Ok(send_again(parts, SendAgain { query, to, per_s, is_dry_run }))
    }

    /// The record with this id; [`Error::RecordUnreadable`] if it may be in a file that cannot be read.
    async fn record(&self, app_id: &AppId, id: RecordId) -> Result<Record, Error> {
        self.history.get(app_id, id).await?.map_err(|unreadable| match &unreadable[..] {
            [] => Error::not_found("Record", id),
            files => Error::RecordUnreadable { id: id.to_string(), files: file_names(files) },
        })
    }

    async fn check_receivers(&self, app_id: &AppId, to: &Receivers) -> Result<(), Error> {
        let (what, name, receivers) = match to {
            Receivers::All | Receivers::Mqtt | Receivers::Topic(_) => return Ok(()),
            Receivers::Webhook(id) => ("Webhook", id.as_str(), outputs::Receivers::Webhook(id)),
            Receivers::Output(name) => ("Output", name.as_str(), outputs::Receivers::Operator(name)),
        };
        let are_there = self.webhooks.are_there(app_id, receivers).await?;
        if are_there { Ok(()) } else { Err(Error::not_found(what, name)) }
    }

    /// Reading takes one right, running functions another, and what is changed or published more.
    async fn allow_decoding(&self, caller: Caller, sent: &SentDecodeAgain) -> Result<Claims, Error> {
        let app_id = &sent.query.app_id;
        self.allow_history(caller.clone(), app_id).await?;
        let purpose = if sent.changes() { Purpose::Change } else { Purpose::Read };
        let run = [ApplicationRight::Settings, ApplicationRight::Devices];
        let rights = if sent.is_written { &run[..1] } else { &run };
        let claims = self.access.allow(caller.clone(), app_id, rights, purpose).await?;
        if sent.published_per_s.is_some() {
            self.access.allow(caller, app_id, &[ApplicationRight::MessagesUpWrite], purpose).await?;
        }
        Ok(claims)
    }

    pub(super) async fn allow_history(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::MessagesUpRead], Purpose::Read).await?;
        self.applications.check_registered(app_id).await
    }
}

/// Leaves out what is the operator's: reasons, which may have addresses of its network, and the names of dead letters,
/// which nobody else can resend.
fn hide_from_owner(delivery: &mut Delivery) {
    delivery.reason.clear();
    delivery.dead_letter.clear();
    if let Some(failing) = &mut delivery.failing {
        failing.reason.clear();
    }
}

/// The part without files that never had records, which the log names; none if nothing is left of it.
fn without_foreign(part: ExportPart) -> Option<ExportPart> {
    match part {
        ExportPart::Unreadable(mut files) => {
            files.retain(|file| !file.is_foreign);
            Some(files).filter(|files| !files.is_empty()).map(ExportPart::Unreadable)
        }
        part => Some(part),
    }
}

#[cfg(test)]
mod tests {
    use api::rest::handler::{DeliveryState, Failing};
    use types::Timestamp;

    use super::*;

    #[test]
    fn what_an_output_of_the_operator_did_not_take_is_not_the_owners_to_resend() {
        let at = Timestamp::from_millis(1000);
        let failing = Failing { since: at, last: at, reason: "10.0.0.1 refused".to_owned() };
        let mut delivery = Delivery {
            kind: "redis".to_owned(),
            state: DeliveryState::GivenUp,
            attempts: 10,
            reason: "10.0.0.1 refused".to_owned(),
            dead_letter: "0000".to_owned(),
            failing: Some(failing),
            ..Delivery::default()
        };
        hide_from_owner(&mut delivery);
        assert_eq!((delivery.reason.as_str(), delivery.dead_letter.as_str(), delivery.attempts), ("", "", 10));
        assert_eq!(delivery.failing.map(|failing| (failing.since, failing.reason)), Some((at, String::new())));
    }
}
