// Each event is the content of the page, as the server renders it.
const events = new EventSource("/events");
events.onmessage = e => {
  document.querySelector("main").innerHTML = e.data;
  document.body.classList.remove("stale");
};
events.onerror = () => document.body.classList.add("stale");
