# Makes one model faster on a server, with nothing of AutoGraph but its protos.
#
# usage: ruby optimize.rb STUBS HOST:PORT MODEL.onnx OUTPUT.onnx [DEVICE]
# STUBS is the folder of what protoc made (README.md). AUTOGRAPH_CA: the file of the authority that the server's certificate is
# from; without it the connection is plain, which only loopback allows. AUTOGRAPH_TOKEN: the token. Ctrl-C cancels the job.
# Exit codes: 0 written, 1 an error, 2 wrong command line, 130 cancelled.
require "digest"
require "grpc"

# One connection. Every call has a deadline, and the token where there is one.
class AutoGraph
  V1 = "autograph/v1"
  CHUNK_BYTES = 1 << 20
  CALL_SECONDS = 30
  TRANSFER_SECONDS = 600
  ENDED = %i[SUCCEEDED FAILED CANCELLED].freeze

  def initialize(address, authority, token)
    credentials = authority ? GRPC::Core::ChannelCredentials.new(File.read(authority)) : :this_channel_is_insecure
    @metadata = token ? { "authorization" => "Bearer #{token}" } : {}
    @blobs = Autograph::V1::Blobs::Stub.new(address, credentials)
    @optimizer = Autograph::V1::Optimizer::Stub.new(address, credentials)
  end

  # Sends a file unless the server has it; gives its digest.
  def upload(bytes)
    digest = Digest::SHA256.hexdigest(bytes)
    missing = @blobs.find_missing(Autograph::V1::FindMissingRequest.new(digests: [digest]), **options).missing
    @blobs.upload(chunks(digest, bytes), **options(TRANSFER_SECONDS)) unless missing.empty?
    digest
  end

  def submit(digest, name, device)
    request = Autograph::V1::OptimizeRequest.new(model_digest: digest, model_name: name, device: device)
    @optimizer.optimize(request, **options)
  end

  # Yields the job whenever it changes; gives its last state. A stream that is cut is taken up again by the job's name.
  def watch(job)
    until ENDED.include?(job.state)
      begin
        request = Autograph::V1::WatchJobRequest.new(name: job.name)
        @optimizer.watch_job(request, metadata: @metadata).each { |now| yield(job = now) }
      rescue GRPC::Unavailable
        sleep 1 # The server restarts: its jobs are on its disk.
      end
    end
    job
  end

  def cancel(job)
    @optimizer.cancel_job(Autograph::V1::CancelJobRequest.new(name: job.name), **options)
  end

  # The bytes of a blob, checked.
  def download(digest)
    request = Autograph::V1::DownloadRequest.new(digest: digest)
    bytes = @blobs.download(request, **options(TRANSFER_SECONDS)).map(&:data).join
    raise "blob #{digest}: other bytes came" unless Digest::SHA256.hexdigest(bytes) == digest

    bytes
  end

  private

  def options(seconds = CALL_SECONDS)
    { deadline: Time.now + seconds, metadata: @metadata }
  end

  def chunks(digest, bytes)
    (0...[bytes.bytesize, 1].max).step(CHUNK_BYTES).map do |begins|
      first = begins.zero? ? { digest: digest, size_bytes: bytes.bytesize } : {}
      data = bytes.byteslice(begins, CHUNK_BYTES)
      Autograph::V1::UploadRequest.new(**first, offset: begins, data: data, last: begins + CHUNK_BYTES >= bytes.bytesize)
    end
  end
end

def run(server, model, output, device)
  job = server.submit(server.upload(File.binread(model)), File.basename(model), device)
  begin
    job = server.watch(job) { |now| warn "#{now.state} #{now.progress&.stage}" }
  rescue Interrupt
    server.cancel(job)
    warn "cancelled"
    return 130
  end
  if job.state != :SUCCEEDED
    warn "#{job.state}: #{job.error&.message}"
    return 1
  end
  File.binwrite(output, server.download(job.result.output_digest))
  puts format("%<verdict>s %<speedup>.3fx, written to %<output>s",
              verdict: job.result.verdict, speedup: job.result.speedup, output: output)
  0
end

if ARGV.length < 4
  warn File.foreach(__FILE__).find { |line| line.start_with?("# usage") }[2..]
  exit 2
end
stubs, address, model, output, device = ARGV
$LOAD_PATH.unshift(stubs)
%w[blobs optimizer].each { |name| require "#{AutoGraph::V1}/#{name}_services_pb" }
begin
  exit run(AutoGraph.new(address, ENV["AUTOGRAPH_CA"], ENV["AUTOGRAPH_TOKEN"]), model, output, device || "")
rescue GRPC::BadStatus => e
  warn "#{e.class.name.split('::').last}: #{e.details}"
rescue SystemCallError => e
  warn e.message
end
exit 1
