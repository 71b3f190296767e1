//! What programs use: account, discovery, handler and data clients.
