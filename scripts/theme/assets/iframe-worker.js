// Pages in files may start no workers, so there the search of the theme runs in a hidden frame, which may load scripts.
// It begins when somebody wants to search, since it halts the page while it reads the index.
// The file's name tells the theme's offline plugin that no such script is to be loaded from another host.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = new Promise((done) => {
        const query = document.querySelector("[data-md-component=search-query]");
        query.addEventListener("focus", () => this.begin(url, done), { once: true });
      });
    }

    begin(url, done) {
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => done(inside));
      script.src = url;
      inside.document.head.append(script);
    }

    postMessage(data) {
      this.frame.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
