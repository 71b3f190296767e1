//! Totals of all messages that were sent again.

use api::rest::handler::{RefusedMessages, SendReport};

use crate::{
    commands::history::{check_all_read, check_taken, say_refused, warn_unreadable, work::Sum},
    output::Output,
    terminal::say,
};

/// Totals of all messages that were sent again, added up from reports.
#[derive(Debug, Default)]
pub(super) struct Sent(SendReport);

impl Sum<SendReport> for Sent {
    fn add(&mut self, report: SendReport) {
        let sum = &mut self.0;
        for (total, more) in [
            (&mut sum.examined, report.examined),
            (&mut sum.sent, report.sent),
            (&mut sum.refused, report.refused),
            (&mut sum.unwanted, report.unwanted),
            (&mut sum.device_gone, report.device_gone),
            (&mut sum.never_published, report.never_published),
            (&mut sum.unreadable, report.unreadable),
        ] {
            *total += more;
        }
        for (receiver, refused) in report.receivers {
            RefusedMessages::add_to(&mut sum.receivers, receiver, refused);
        }
        sum.unreadable_files.extend(report.unreadable_files);
        sum.done |= report.done;
    }

    fn is_done(&self) -> bool {
        self.0.done
    }

    fn examined(&self) -> u64 {
        self.0.examined
    }
}

impl Sent {
    /// An error if somebody refused any, or files could not be read.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_taken(self.0.refused)?;
        check_all_read(self.0.unreadable_files.len())
    }

    /// Prints them for people, or as an object for programs.
    pub(super) fn print(&self, output: &Output, is_dry_run: bool) -> anyhow::Result<()> {
        if !output.is_table() {
            return output.object(serde_json::to_value(&self.0)?);
        }
        say(self.summary(is_dry_run))?;
        warn_unreadable(&self.0.unreadable_files)?;
        say_refused(&self.0.receivers)
    }

    /// One line with the counts that are not zero.
    fn summary(&self, is_dry_run: bool) -> String {
        let report = &self.0;
        let named = [
            (report.sent, if is_dry_run { "would be sent" } else { "sent" }),
            (report.refused, "not taken by all who want them"),
            (report.unwanted, "that nobody receives"),
            (report.device_gone, "whose device is gone"),
            (report.never_published, "never published, because the validator refused them"),
            (report.unreadable, "that cannot be read"),
        ];
        let counts: Vec<_> =
            named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        let counts = if counts.is_empty() { "nothing to send".to_owned() } else { counts.join(", ") };
        format!("{} {}: {counts}", report.examined, if report.examined == 1 { "message" } else { "messages" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_added_up_and_who_refuses_is_named() {
        let mut sent = Sent::default();
        let refused = RefusedMessages { count: 2, reason: "full".to_owned(), id: "1".to_owned() };
        let receivers = [("webhook one".to_owned(), refused)].into_iter().collect();
        sent.add(SendReport { examined: 3, sent: 1, refused: 2, receivers, ..SendReport::default() });
        let again = sent.0.receivers.clone();
        sent.add(SendReport { examined: 1, refused: 1, receivers: again, ..SendReport::default() });
        sent.add(SendReport { done: true, ..SendReport::default() });
        assert_eq!(sent.summary(false), "4 messages: 1 sent, 3 not taken by all who want them");
        assert_eq!(sent.0.receivers["webhook one"].count, 4);
        assert!(sent.is_done() && sent.check().is_err());
        assert_eq!(Sent::default().summary(true), "0 messages: nothing to send");
    }
}
