//! Announcements that were read a moment ago, which need not be asked for again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::discovery::Announcement;
use tokio::time::Instant;
use types::{ComponentId, ServiceName};

/// How long an answer counts.
const AGE_MAX: Duration = Duration::from_secs(60);
/// The most answers that are kept; beyond, all are forgotten.
const ANSWERS_MAX: usize = 1000;

/// A question: a service, and one component of it or all.
pub(super) type Question = (ServiceName, Option<ComponentId>);

/// The answers of the last minute.
#[derive(Default)]
pub(super) struct Known {
    answers: Mutex<HashMap<Question, (Instant, Vec<Announcement>)>>,
}

impl Known {
    /// What was answered less than a minute ago.
    pub(super) fn find(&self, question: &Question) -> Option<Vec<Announcement>> {
        let answers = self.lock();
        let (since, answer) = answers.get(question)?;
        (since.elapsed() < AGE_MAX).then(|| answer.clone())
    }

    pub(super) fn keep(&self, question: Question, answer: &[Announcement]) {
        let mut answers = self.lock();
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(question, (Instant::now(), answer.to_vec()));
    }

    /// Forgets everything, after a change of our own.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Question, (Instant, Vec<Announcement>)>> {
        // A panic elsewhere leaves a memory as good as before.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Known").field("answers", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_minute_or_until_something_was_said() {
        let (known, question) = (Known::default(), (ServiceName::Handler, None));
        let answer = [Announcement { id: "one".into(), ..Default::default() }];
        known.keep(question.clone(), &answer);
        tokio::time::advance(AGE_MAX - Duration::from_millis(1)).await;
        assert_eq!(known.find(&question).unwrap(), answer);
        assert!(known.find(&(ServiceName::Broker, None)).is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(known.find(&question).is_none());
        known.keep(question.clone(), &answer);
        known.forget();
        assert!(known.find(&question).is_none());
        for number in 0..2 * ANSWERS_MAX {
            known.keep((ServiceName::Handler, Some(format!("id-{number}").parse().unwrap())), &answer);
        }
        assert!(known.lock().len() <= ANSWERS_MAX);
    }
}
