//! Events of a connection.

/// An event of a connection, named as in the data clients of The Things Network v2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The client is connected again.
    Connect,
    /// The connection was lost, for this reason.
    Disconnect(String),
    /// The client tries to connect again.
    Reconnect,
    /// An attempt to connect failed, for this reason. There will be another one.
    Close(String),
    /// The broker refused the credential, for this reason. The client has ended.
    Error(String),
}
