//! What one delta costs: framing, decoding and assembling together.

use claw_providers::assemble::Assembler;
use claw_providers::sse::{Frame, SseParser};
use claw_providers::wire::{Decoder, Wire};
use divan::counter::ItemsCount;

const DELTAS: usize = 1_000;

fn main() {
    divan::main();
}

fn stream(wire: Wire) -> Vec<u8> {
    let mut text = String::new();
    for n in 0..DELTAS {
        text += &match wire {
            Wire::Anthropic => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"word {n} of \"}}}}\n\n"
            ),
            Wire::Chat => format!(
                "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1764581022,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {n} of \"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
            ),
        };
    }
    text.into_bytes()
}

fn read(bytes: &[u8], wire: Wire, piece: usize) -> Assembler {
    let (mut parser, mut decoder, mut assembler) =
        (SseParser::default(), Decoder::new(wire), Assembler::default());
    let mut out = Vec::new();
    for chunk in bytes.chunks(piece) {
        let _ = parser.push(chunk, &mut |frame| {
            if let Frame::Event { name, data } = frame {
                let _ = decoder.event(name, data, &mut out);
            }
        });
        for event in out.drain(..) {
            assembler.take(&event);
        }
    }
    assembler
}

#[divan::bench(args = [Wire::Anthropic, Wire::Chat])]
fn a_thousand_deltas_in_pieces_of_4096(bencher: divan::Bencher, wire: Wire) {
    let bytes = stream(wire);
    bencher.counter(ItemsCount::new(DELTAS)).bench(|| read(&bytes, wire, 4096));
}

#[divan::bench(args = [Wire::Anthropic, Wire::Chat])]
fn a_thousand_deltas_in_pieces_of_17(bencher: divan::Bencher, wire: Wire) {
    let bytes = stream(wire);
    bencher.counter(ItemsCount::new(DELTAS)).bench(|| read(&bytes, wire, 17));
}

#[divan::bench]
fn framing_alone(bencher: divan::Bencher) {
    let bytes = stream(Wire::Chat);
    bencher.counter(ItemsCount::new(DELTAS)).bench(|| {
        let mut seen = 0;
        let _ = SseParser::default().push(&bytes, &mut |_| seen += 1);
        seen
    });
}
