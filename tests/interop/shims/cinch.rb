# What ArchiveBot's bot asks of Cinch, without an IRC server: lines `NICK CHANNEL TEXT` of standard input are messages,
# `TIMERS` is the moment of all timers, and what the bot says is printed as lines of JSON. Every nick is an operator.

require 'json'
require 'ostruct'

module Cinch
  def self.say(to, text)
    puts JSON.generate('to' => to, 'text' => text.to_s)
    $stdout.flush
  end

  User = Struct.new(:nick) do
    def safe_send(text)
      Cinch.say(nick, text)
    end
  end

  Channel = Struct.new(:name) do
    def opped?(_user)
      true
    end
    alias_method :voiced?, :opped?

    def send(text)
      Cinch.say(name, text)
    end
  end

  Message = Struct.new(:user, :channel) do
    def safe_reply(text, _with_nick)
      Cinch.say(channel.name, text)
    end
  end

  module Plugin
    def self.included(plugin)
      plugin.extend(Timers)
    end

    module Timers
      def timer(_seconds, method:)
        (@timers ||= []) << method
      end

      def timers
        @timers || []
      end
    end

    attr_reader :bot, :config

    def initialize(bot, config)
      @bot, @config = bot, config
    end

    def Channel(name)
      Cinch::Channel.new(name)
    end
  end

  class Bot
    attr_reader :channels

    def initialize(&block)
      @handlers = []
      plugins = OpenStruct.new(plugins: [], options: {})
      @configuration = OpenStruct.new(sasl: OpenStruct.new, ssl: OpenStruct.new, plugins: plugins)
      instance_eval(&block)
      @channels = @configuration.channels.map { |name| Channel.new(name) }
      @plugins = plugins.plugins.map { |plugin| plugin.new(self, plugins.options[plugin]) }
    end

    def configure
      yield @configuration
    end

    def on(_event, pattern, &handler)
      @handlers << [pattern, handler]
    end

    def start
      Cinch.say('', 'ready')
      $stdin.each_line(chomp: true) { |line| line == 'TIMERS' ? tick : hear(*line.split(' ', 3)) }
    end

    private

    def tick
      @plugins.each { |plugin| plugin.class.timers.each { |name| plugin.__send__(name) } }
      Cinch.say('', 'ticked')
    end

    def hear(nick, channel, text)
      message = Message.new(User.new(nick), Channel.new(channel))
      @handlers.each do |pattern, handler|
        found = pattern.match(text)
        instance_exec(message, *found.captures, &handler) if found
      end
      Cinch.say('', 'heard')
    end
  end
end
