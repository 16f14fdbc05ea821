// Each event is the content of the page, as the server renders it. Of the elements with an
// id, those that have changed get the new content. What is around them stays, and with it
// the focus of the button.
const events = new EventSource("/events");
events.onmessage = e => {
  const next = new DOMParser().parseFromString(e.data, "text/html");
  for (const now of next.querySelectorAll("[id]")) {
    const shown = document.getElementById(now.id);
    if (!shown) return location.reload(); // the service has another version of the page
    if (shown.innerHTML !== now.innerHTML) shown.innerHTML = now.innerHTML;
  }
  document.body.classList.remove("stale");
};
events.onerror = () => document.body.classList.add("stale");
