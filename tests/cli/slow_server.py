"""A web server of the tests' own, which can do what others do by accident: cut, lie, change, drip."""

import hashlib
import http.server
import threading
import time


class File:
    """How a path is answered; fields may change between requests."""

    def __init__(self, data, **options):
        self.data = data
        self.etag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
        self.ranges = True
        self.cut_after = []       # of each request in turn: bytes until the connection is cut; None: never
        self.status = 200
        self.headers = {}
        self.length = True        # says how long it is
        self.claims = None        # the Content-Length to claim instead
        self.drip = None          # seconds between blocks
        self.block = 65536
        self.location = None
        self.raw = None           # called with (handler, range): writes the whole answer itself
        self.requests = []        # the range of each
        self.__dict__.update(options)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def end_headers(self):
        self.send_header("Connection", "close")
        super().end_headers()

    def do_GET(self):
        file = self.server.files.get(self.path.split("?")[0])
        self.close_connection = True
        if file is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range")
        file.requests.append(wanted)
        if file.raw:
            try:
                file.raw(self, wanted)
            except OSError:
                pass  # who asked has gone
            return
        cut = file.cut_after.pop(0) if file.cut_after else None
        if file.location:
            self.send_response(302)
            self.send_header("Location", file.location)
            for name, value in file.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if file.status != 200:
            self.send_error(file.status)
            return
        begin = int(wanted[len("bytes="):].split("-")[0]) if wanted and file.ranges else 0
        data = file.data[begin:]
        if wanted and file.ranges and not data:
            self.send_error(416)
            return
        self.send_response(206 if wanted and file.ranges else 200)
        total = file.claims if file.claims is not None else len(file.data)
        if wanted and file.ranges:
            self.send_header("Content-Range", f"bytes {begin}-{len(file.data) - 1}/{total}")
        if file.etag:
            self.send_header("ETag", file.etag)
        for name, value in file.headers.items():
            self.send_header(name, value)
        if file.length:
            self.send_header("Content-Length", str(total - begin))
        self.end_headers()
        try:
            for at in range(0, len(data), file.block):
                block = data[at:at + file.block]
                if cut is not None and at + len(block) > cut:
                    self.wfile.write(block[:max(0, cut - at)])
                    self.wfile.flush()
                    self.connection.shutdown(2)
                    return
                self.wfile.write(block)
                if file.drip:
                    self.wfile.flush()
                    time.sleep(file.drip)
        except OSError:
            pass  # who asked has gone


class Server:
    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.files = self.files = {}
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, path, data, **options):
        self.files[path] = File(data, **options)
        return self.address + path
