//! MQTT over WebSocket: a client's frames as a stream of bytes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Message,
        error::Error,
        handshake::server::{ErrorResponse, Request, Response},
        http::{HeaderValue, StatusCode, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};

/// The protocols that clients ask for. Those that know only MQTT 3.1 have another name for it.
const PROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];

/// Maximum size of a frame that a client may send. It has packets, or pieces of packets.
const FRAME_BYTES_MAX: usize = 128 * 1024;

/// Maximum size of a frame that is sent, so that a slow client can be told from one that reads nothing.
const SENT_FRAME_BYTES: usize = 16 * 1024;

/// Size of one read. Each client keeps a buffer of this size.
const READ_BYTES: usize = 4 * 1024;

/// The bytes in a client's WebSocket frames.
pub(crate) struct WebSocketBytes<S> {
    frames: WebSocketStream<S>,
    /// The rest of the last frame.
    arrived: Bytes,
}

/// Answers a client's WebSocket handshake. It is refused unless the client asks for MQTT.
pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> Result<WebSocketBytes<S>, Error> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * SENT_FRAME_BYTES)
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX));
    let frames = accept_hdr_async_with_config(stream, select_protocol, Some(config)).await?;
    Ok(WebSocketBytes { frames, arrived: Bytes::new() })
}

#[allow(clippy::result_large_err, reason = "the library wants this type")]
fn select_protocol(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let headers = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL);
    let offered = headers.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let known = |offer: &str| PROTOCOLS.into_iter().find(|protocol| offer.trim().eq_ignore_ascii_case(protocol));
    let Some(protocol) = offered.filter_map(known).next() else {
        let text = "the WebSocket subprotocol must be mqtt or mqttv3.1\n".to_owned();
        let mut refusal = ErrorResponse::new(Some(text));
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        return Err(refusal);
    };
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    Ok(response)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocketBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.arrived.is_empty() {
            match ready!(Pin::new(&mut self.frames).poll_next(context)) {
                Some(Ok(Message::Binary(bytes))) => self.arrived = bytes,
                Some(Ok(Message::Text(_))) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        let count = self.arrived.len().min(buffer.remaining());
        buffer.put_slice(&self.arrived[..count]);
        self.arrived.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocketBytes<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.frames).poll_ready(context)).map_err(io::Error::other)?;
        let frame = &bytes[..bytes.len().min(SENT_FRAME_BYTES)];
        let message = Message::Binary(Bytes::copy_from_slice(frame));
        Pin::new(&mut self.frames).start_send(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(frame.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.frames).poll_flush(context).map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.frames).poll_close(context).map_err(io::Error::other)
    }
}
