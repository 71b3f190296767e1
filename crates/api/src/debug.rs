//! `Debug` for messages with keys: it shows whether there is a key, never the key.

use std::fmt;

use crate::{chirpstack, chirpstack_events::gw, handler, lorawan};

/// True if there is a key.
struct Hidden(bool);

impl fmt::Debug for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0 { "…" } else { "none" })
    }
}

impl fmt::Debug for handler::Application {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Application")
            .field("app_id", &self.app_id)
            .field("payload_format", &self.payload_format)
            .field("register_on_join_access_key", &Hidden(!self.register_on_join_access_key.is_empty()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for lorawan::Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Device")
            .field("app_id", &self.app_id)
            .field("dev_id", &self.dev_id)
            .field("app_eui", &self.app_eui)
            .field("dev_eui", &self.dev_eui)
            .field("dev_addr", &self.dev_addr)
            .field("nwk_s_key", &Hidden(!self.nwk_s_key.is_empty()))
            .field("app_s_key", &Hidden(!self.app_s_key.is_empty()))
            .field("app_key", &Hidden(!self.app_key.is_empty()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for lorawan::ActivationMetadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ActivationMetadata")
            .field("app_eui", &self.app_eui)
            .field("dev_eui", &self.dev_eui)
            .field("dev_addr", &self.dev_addr)
            .field("nwk_s_key", &Hidden(!self.nwk_s_key.is_empty()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for gw::KeyEnvelope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeyEnvelope")
            .field("kek_label", &self.kek_label)
            .field("aes_key", &Hidden(!self.aes_key.is_empty()))
            .finish()
    }
}

impl fmt::Debug for chirpstack::Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Device")
            .field("dev_eui", &self.dev_eui)
            .field("device_profile_id", &self.device_profile_id)
            .field("variables", &Hidden(!self.variables.is_empty()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_printed() {
        let device = lorawan::Device { app_key: vec![211; 16], nwk_s_key: vec![211; 16], ..Default::default() };
        let application =
            handler::Application { register_on_join_access_key: "issuer.hush".into(), ..Default::default() };
        let activation = lorawan::ActivationMetadata { nwk_s_key: vec![211; 16], ..Default::default() };
        let variables = [("token".to_owned(), "hush".to_owned())].into();
        let other = chirpstack::Device { variables, ..Default::default() };
        let shown = format!("{device:?} {application:?} {activation:?} {other:?}");
        assert!(!shown.contains("211") && !shown.contains("hush"), "{shown}");
    }
}
