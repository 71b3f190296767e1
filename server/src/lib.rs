//! What every service starts from: config, telemetry, auth, serving, TLS.
