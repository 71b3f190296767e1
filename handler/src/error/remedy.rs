//! Advice for callers about what does not exist.

/// The rest of the text that something was not found: what to do about it, if that is known.
pub(super) fn of(what: &str, id: &str) -> String {
    match what {
        // Only callers with rights to it are told, so the account service has it.
        "Application" => format!(
            " on this handler: register it with `airlock applications select {id}` and then `airlock applications \
             register`, or on its page in the console"
        ),
        _ => String::new(),
    }
}
