//! Chooses the application of which a network is asked next: invented ones must not keep the question from a real one.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
};

use types::AppId;

/// Maximum number of applications that wait for a question.
const WAITING_MAX: usize = 1024;
/// Maximum number of remembered answers.
const REFUSED_MAX: usize = 4096;
/// Maximum length of a name in bytes. Those of networks are shorter, but whoever may publish can invent any.
const NAME_BYTES_MAX: usize = 100;

/// Applications that wait for a question, and answers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: HashMap<AppId, WaitingApplication>,
    /// Hashes of applications with a device that is not in them.
    refused: HashSet<u64>,
    hasher: RandomState,
    /// Number of questions that were chosen.
    chosen: u64,
}

/// A question, by the names that the network has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) app_id: AppId,
    pub(super) application: String,
    pub(super) device: String,
}

#[derive(Debug)]
struct WaitingApplication {
    question: Question,
    /// Number of messages that the application had; for one that took the place of another, also those of that.
    messages: u64,
}

impl Questions {
    /// Notes a message. If there are too many applications, the one with the fewest messages makes room: one that goes
    /// on sending stays, however many send once.
    pub(super) fn add(&mut self, app_id: &AppId, (application, device): (&str, &str)) {
        let is_long = application.len() > NAME_BYTES_MAX || device.len() > NAME_BYTES_MAX;
        if is_long || self.refused.contains(&self.key(app_id, device)) {
            return;
        }
        if let Some(waiting) = self.waiting.get_mut(app_id) {
            waiting.messages += 1;
            // Anybody may have invented the one before.
            device.clone_into(&mut waiting.question.device);
            return;
        }
        let messages = if self.waiting.len() < WAITING_MAX { 1 } else { self.take_least() + 1 };
        let (application, device) = (application.to_owned(), device.to_owned());
        let question = Question { app_id: app_id.clone(), application, device };
        self.waiting.insert(app_id.clone(), WaitingApplication { question, messages });
    }

    /// Returns true if no application waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the application with the most messages, or in turn with that any: so neither many messages nor many
    /// applications keep out others for good.
    pub(super) fn take_next(&mut self) -> Option<Question> {
        let random = self.hasher.hash_one(self.chosen);
        let app_id = if self.chosen.is_multiple_of(2) {
            self.waiting.iter().max_by_key(|(_, waiting)| waiting.messages).map(|(app_id, _)| app_id)
        } else {
            self.waiting.keys().nth((random % self.waiting.len().max(1) as u64) as usize)
        };
        let app_id = app_id?.clone();
        self.chosen = self.chosen.wrapping_add(1);
        self.waiting.remove(&app_id).map(|waiting| waiting.question)
    }

    /// Remembers that the device of a question is not in its application. Others of the same application may be.
    pub(super) fn refuse(&mut self, Question { app_id, device, .. }: &Question) {
        if self.refused.len() < REFUSED_MAX {
            self.refused.insert(self.key(app_id, device));
        }
    }

    /// Forgets the answers: devices may be in their applications by now.
    pub(super) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    fn key(&self, app_id: &AppId, device: &str) -> u64 {
        self.hasher.hash_one((app_id, device))
    }

    /// Removes the application with the fewest messages, and returns their number.
    fn take_least(&mut self) -> u64 {
        let least = self.waiting.iter().min_by_key(|(_, waiting)| waiting.messages);
        let app_id = least.map(|(app_id, _)| app_id.clone());
        app_id.and_then(|app_id| self.waiting.remove(&app_id)).map_or(0, |waiting| waiting.messages)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, iter};

    use super::*;

    fn add(questions: &mut Questions, app_id: &str, device: &str) {
        questions.add(&app_id.parse().unwrap(), (app_id, device));
    }

    fn rest(questions: &mut Questions) -> Vec<String> {
        iter::from_fn(|| questions.take_next()).map(|question| question.app_id.to_string()).collect()
    }

    #[test]
    fn an_application_that_goes_on_is_next_however_many_others_come_once() {
        let mut questions = Questions::default();
        for number in 0..3 * WAITING_MAX {
            add(&mut questions, &format!("invented-{number}"), "dev");
            if number % 100 == 0 {
                add(&mut questions, "real", "dev");
            }
        }
        assert_eq!(questions.waiting.len(), WAITING_MAX);
        assert_eq!(questions.take_next().unwrap().app_id.as_str(), "real");
    }

    #[test]
    fn each_application_is_asked_about_once_and_not_again_for_the_same_device() {
        let mut questions = Questions::default();
        for number in 0..20 {
            (0..=number).for_each(|_| add(&mut questions, &format!("app-{number}"), "dev"));
        }
        let first = questions.take_next().unwrap();
        assert_eq!((first.app_id.as_str(), first.device.as_str()), ("app-19", "dev"));
        let others = rest(&mut questions);
        assert_eq!(others.len(), 19);
        let expected: BTreeSet<_> = (0..19).map(|number| format!("app-{number}")).collect();
        assert_eq!(others.into_iter().collect::<BTreeSet<_>>(), expected);

        questions.refuse(&first);
        add(&mut questions, "app-19", "dev");
        assert!(questions.is_empty());
        add(&mut questions, "app-19", "other");
        assert_eq!(questions.take_next().unwrap().device, "other");
        questions.forget_refused();
        add(&mut questions, "app-19", "dev");
        assert!(!questions.is_empty());
    }

    #[test]
    fn the_last_device_of_an_application_counts_and_no_long_name() {
        let mut questions = Questions::default();
        add(&mut questions, "my-app", &"x".repeat(NAME_BYTES_MAX + 1));
        assert!(questions.is_empty());
        add(&mut questions, "my-app", "invented");
        add(&mut questions, "my-app", "real");
        assert_eq!(questions.take_next().unwrap().device, "real");
    }
}
