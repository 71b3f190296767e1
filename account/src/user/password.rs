//! Passwords: rules, hashing and verification.

mod threads;

use std::sync::Arc;

use argon2::{
    Algorithm, Argon2, Params,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::{Random, Secret, Username};

use self::threads::Threads;
use crate::{Error, Result};

/// Minimum length of a password, in characters.
const CHARACTERS_MIN: usize = 8;
/// Maximum length of a password, in characters.
const CHARACTERS_MAX: usize = 128;
/// Memory per hash: 19 MiB, as OWASP recommends.
const MEMORY_KIB: u32 = 19 * 1024;
/// Argon2 passes over the memory.
const PASSES: u32 = 2;
/// How many verifications may wait per running one.
const WAITING_PER_CHECK: usize = 32;

/// Hashes and verifies passwords, a few at a time.
///
/// Others wait in a bounded queue and are rejected when it is full, so a flood of logins neither exhausts memory nor
/// delays anything else.
#[derive(Clone)]
pub(crate) struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    threads: Threads,
    nobody: Arc<str>,
    random: Arc<dyn Random>,
}

/// The stored hash, a PHC string.
pub(crate) type PasswordRecord = String;

/// The most common passwords that are long enough.
const COMMON: &str = include_str!("password/common.txt");

/// Rejects passwords that are too short, too long, or too common.
pub(crate) fn check(password: &Secret, username: &Username) -> Result<()> {
    let password = password.expose();
    if !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&password.chars().count()) {
        return Err(Error::Invalid { what: "password", must: "must have 8 to 128 characters" });
    }
    let guess = password.to_ascii_lowercase();
    if guess == username.as_str() || COMMON.lines().any(|common| common == guess) {
        return Err(Error::Invalid { what: "password", must: "must not be one that many people have" });
    }
    Ok(())
}

impl Passwords {
    /// Allows this many concurrent verifications; zero means one fewer than there are cores, but at least one.
    pub(crate) fn new(checks_max: usize, random: Arc<dyn Random>) -> Result<Self> {
        let checks = if checks_max == 0 { one_core_left() } else { checks_max };
        let nobody = hash("a password that no user has", &salt(random.as_ref()))?.into();
        Ok(Self {
            running: Arc::new(Semaphore::new(checks)),
            waiting: Arc::new(Semaphore::new(checks.saturating_mul(WAITING_PER_CHECK + 1).min(Semaphore::MAX_PERMITS))),
            threads: Threads::start(checks)?,
            nobody,
            random,
        })
    }

    /// Hashes a new password.
    pub(crate) async fn record(&self, password: Secret) -> Result<PasswordRecord> {
        let salt = salt(self.random.as_ref());
        self.run(move || hash(password.expose(), &salt)).await?
    }

    /// Whether a password matches a hash. Without a hash it takes the same time.
    pub(crate) async fn fits(&self, password: Secret, record: Option<PasswordRecord>) -> Result<bool> {
        let known = record.is_some();
        let record = record.unwrap_or_else(|| self.nobody.to_string());
        // No stored password is this long; do not hash megabytes.
        if password.expose().len() > CHARACTERS_MAX * char::MAX.len_utf8() {
            return Ok(false);
        }
        let fits = self.run(move || fits(password.expose(), &record)).await??;
        Ok(fits && known)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let place = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Error::Busy)?;
        let turn = Arc::clone(&self.running).acquire_owned().await.map_err(|_| Error::Busy)?;
        // The task holds the permits, because it continues even if the caller stops waiting.
        let held: [OwnedSemaphorePermit; 2] = [place, turn];
        let task = move || {
            let done = work();
            drop(held);
            done
        };
        self.threads.run(task).await
    }
}

/// One fewer than there are cores, but at least one.
fn one_core_left() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

fn argon2() -> Result<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| Error::Crypto("set up Argon2"))?;
    Ok(Argon2::new(Algorithm::Argon2id, argon2::Version::V0x13, params))
}

fn salt(random: &dyn Random) -> [u8; 16] {
    let mut salt = [0; 16];
    random.fill(&mut salt);
    salt
}

fn hash(password: &str, salt: &[u8]) -> Result<PasswordRecord> {
    let record: PasswordHash =
        argon2()?.hash_password_with_salt(password.as_bytes(), salt).map_err(|_| Error::Crypto("hash a password"))?;
    Ok(record.to_string())
}

fn fits(password: &str, record: &str) -> Result<bool> {
    let record = PasswordHash::new(record).map_err(|_| Error::Crypto("read a password's record"))?;
    Ok(argon2()?.verify_password(password.as_bytes(), &record).is_ok())
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use server::system::OsRandom;

    use super::*;

    #[tokio::test]
    async fn rejects_verifications_when_the_queue_is_full() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let turn = Arc::clone(&passwords.running).acquire_owned().await.unwrap();
        let check = || Box::pin(passwords.fits(Secret::new("a password"), None));
        let mut now = Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..=WAITING_PER_CHECK).map(|_| check()).collect();
        for check in &mut waiting {
            assert!(check.as_mut().poll(&mut now).is_pending());
        }
        assert!(matches!(pin!(check()).poll(&mut now), Poll::Ready(Err(Error::Busy))));
        waiting.pop();
        assert!(pin!(check()).poll(&mut now).is_pending(), "who stops waiting makes room");
        drop(turn);
        assert!(!waiting.swap_remove(0).await.unwrap());
    }

    #[tokio::test]
    async fn a_hash_matches_only_its_password() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let record = passwords.record(Secret::new("a password")).await.unwrap();
        assert!(passwords.fits(Secret::new("a password"), Some(record.clone())).await.unwrap());
        assert!(!passwords.fits(Secret::new("a passwore"), Some(record)).await.unwrap());
    }
}
