//! Users, applications, gateways, rights, tokens; the account site.
