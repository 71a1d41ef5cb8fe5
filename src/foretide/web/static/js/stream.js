// The event stream, over fetch, since EventSource cannot send an Authorization header and a token must never be in a URL.
const TOKEN = "foretide-token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

export function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  return fetch(path, { ...options, headers, cache: "no-store" });
}

// Calls on.state, on.tick, on.open, on.lost, and on.token when the server wants one; goes on for ever.
export async function follow(on) {
  let pause = 500;
  for (;;) {
    try {
      const answer = await ask("/api/stream");
      if (answer.status === 401) {
        await on.token();
        continue;
      }
      if (!answer.ok) throw new Error((await answer.json()).error);
      pause = 500;
      on.open();
      await read(answer.body.getReader(), on);
      on.lost("the server ended the stream");
    } catch (error) {
      on.lost(String(error.message || error));
    }
    await new Promise((resume) => setTimeout(resume, pause));
    pause = Math.min(pause * 2, 10000);
  }
}

async function read(reader, on) {
  const text = new TextDecoder();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += text.decode(value, { stream: true });
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) deliver(block, on);
  }
}

function deliver(block, on) {
  let name = null;
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (name === "state" || name === "tick") on[name](JSON.parse(data));
}
